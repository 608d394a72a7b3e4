import { readJobCursor, writeJobCursor } from '../api/job-routes.ts';
import { type ViewJob, viewJobs } from '../api/job-view.ts';
import type { ApiReply } from '../api/reply.ts';
import { refuse } from '../base/errors.ts';
import { isEnded, type Job } from '../model/job.ts';
import { readParameters } from '../model/parameter-kinds.ts';
import { listParameters, parseJobId } from '../model/request-parameters.ts';
import { writeTime } from '../model/timestamp.ts';
import { readTimeline } from '../store/job-timeline.ts';
import { cancelJob } from '../store/jobs/cancel-job.ts';
import { listJobs } from '../store/jobs/list-jobs.ts';
import { readStoredAtOnce, type StoredJob } from '../store/jobs/read-job.ts';
import type { RecordStore } from '../store/script.ts';
import type { CallByHand } from './call-by-hand.ts';
import { changeRoute, type DashboardCall, type DashboardRoute, readRoute } from './dashboard-app.ts';
import { streamJobs } from './job-stream.ts';

interface JobHistoryParts {
  readonly store: RecordStore;
  readonly viewJob: ViewJob;
  readonly cancelled: (job: Job) => void;
  readonly callByHand: CallByHand;
  /** Aborted when the process stops. */
  readonly draining: AbortSignal;
}

const maxShownEnded = 100;

export function jobHistoryRoutes(parts: JobHistoryParts): DashboardRoute[] {
  const { store } = parts;
  return [
    readRoute('/api/jobs', (call) => showJobs(parts, call)),
    readRoute('/api/jobs/events', (call) => {
      const { accountId } = call;
      return streamJobs(parts, call, (limit) => readPage(parts, accountId, { status: undefined, limit, after: null }));
    }),
    readRoute('/api/jobs/ended', (call) => showEnded(parts, call)),
    readRoute('/api/jobs/:id', (call) => showJob(parts, call)),
    changeRoute('POST', '/api/jobs', 'jobs', async (call) => {
      const { endpoint = 'video' } = call.given;
      if (endpoint === 'video' || endpoint === 'audio') return parts.callByHand(call, endpoint);
      throw refuse('bad_request', 'Bad Request: endpoint must be one of video, audio');
    }),
    changeRoute('POST', '/api/metadata', 'jobs', async (call) => parts.callByHand(call, 'metadata')),
    changeRoute('POST', '/api/jobs/:id/retry', 'jobs', async (call) => parts.callByHand(call, 'retry')),
    changeRoute('DELETE', '/api/jobs/:id', 'jobs', async (call) => {
      const { job } = await requireJob(store, call.accountId, String(call.req.params.id));
      if (!isEnded(job.status)) {
        const { done } = await cancelJob(store, job);
        if (done) parts.cancelled(job);
      }
      return showJob(parts, call);
    }),
  ];
}

async function showJobs({ store, viewJob }: JobHistoryParts, { req, accountId }: DashboardCall): Promise<ApiReply> {
  const parsed = readParameters(listParameters, req.query);
  if (!parsed.ok) throw refuse('bad_request', parsed.sentence);
  const { cursor, ...wanted } = parsed.value;
  const after = cursor === undefined ? null : readJobCursor(cursor);
  if (accountId === '') return { status: 200, body: { jobs: [], next_cursor: null } };
  return { status: 200, body: await readPage({ store, viewJob }, accountId, { ...wanted, after }) };
}

/** The newest jobs that have ended, however many wait. */
async function showEnded(parts: JobHistoryParts, { accountId }: DashboardCall): Promise<ApiReply> {
  if (accountId === '') return { status: 200, body: { jobs: [] } };
  const { jobs } = await readPage(parts, accountId, { status: 'ended', limit: maxShownEnded, after: null });
  return { status: 200, body: { jobs } };
}

/** Returns one page of the list, with where the next one begins. */
async function readPage(
  { store, viewJob }: Pick<JobHistoryParts, 'store' | 'viewJob'>,
  accountId: string,
  wanted: Parameters<typeof listJobs>[2],
) {
  const { jobs, positions, next } = await listJobs(store, accountId, wanted);
  const shown = await viewJobs(store, viewJob, accountId, jobs, positions);
  return { jobs: shown, next_cursor: next && writeJobCursor(next) };
}

async function showJob({ store, viewJob }: JobHistoryParts, call: DashboardCall): Promise<ApiReply> {
  const { job, attempts } = await requireJob(store, call.accountId, String(call.req.params.id));
  const [[shown = {}], events] = await Promise.all([
    viewJobs(store, viewJob, job.account, [job]),
    readTimeline(store, job, attempts),
  ]);
  const timeline = events.map((event) => ({ ...event, at: writeTime(event.at) }));
  return { status: 200, body: { ...shown, timeline } };
}

/** Returns a job of the account; refuses an id of no job, or of another account's. */
export async function requireJob(store: RecordStore, accountId: string, text: string): Promise<StoredJob> {
  const id = parseJobId(text);
  const found = id.ok && accountId !== '' ? await readStoredAtOnce(store, id.jobId) : null;
  if (found?.job.account !== accountId) throw refuse('not_found', 'There is no such job');
  return found;
}

import { cancelIfOpen, requirePage, viewPage } from '../api/job-routes.ts';
import { type ViewJob, viewJobs } from '../api/job-view.ts';
import type { ApiReply } from '../api/reply.ts';
import { refuse } from '../base/errors.ts';
import type { Job } from '../model/job.ts';
import { parseJobId } from '../model/request-parameters.ts';
import { writeTime } from '../model/timestamp.ts';
import { readTimeline } from '../store/job-timeline.ts';
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
      return streamJobs(parts, call, (limit) => viewPage(parts, accountId, { status: undefined, limit, after: null }));
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
      await cancelIfOpen(parts, job);
      return showJob(parts, call);
    }),
  ];
}

async function showJobs(parts: JobHistoryParts, { req, accountId }: DashboardCall): Promise<ApiReply> {
  const wanted = requirePage(req.query);
  if (accountId === '') return { status: 200, body: { jobs: [], next_cursor: null } };
  return { status: 200, body: await viewPage(parts, accountId, wanted) };
}

/** The newest jobs that have ended, however many wait. */
async function showEnded(parts: JobHistoryParts, { accountId }: DashboardCall): Promise<ApiReply> {
  if (accountId === '') return { status: 200, body: { jobs: [] } };
  const { jobs } = await viewPage(parts, accountId, { status: 'ended', limit: maxShownEnded, after: null });
  return { status: 200, body: { jobs } };
}

async function showJob({ store, viewJob }: JobHistoryParts, call: DashboardCall): Promise<ApiReply> {
  const stored = await requireJob(store, call.accountId, String(call.req.params.id));
  const [[shown = {}], events] = await Promise.all([
    viewJobs(store, viewJob, stored.job.account, [stored.job]),
    readTimeline(store, stored),
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

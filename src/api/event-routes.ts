import type { Response } from 'express';
import { Refusal } from '../base/errors.ts';
import { isEnded, type Job } from '../model/job.ts';
import { filterFields, type Path } from '../model/select-fields.ts';
import type { KeyedCall, KeyedHandler } from './app.ts';
import { enterJob, type JobRoutes } from './job-routes.ts';
import { readOwnJob, viewJobs } from './job-view.ts';
import type { JobWatch } from './job-watch.ts';

const reconnectMs = 1000;

/** GET of a job's events: `progress` with the Job at each change, `end` with it at its end. Ids are the record's revision. */
export function streamEvents(routes: JobRoutes): KeyedHandler {
  return async (call) => {
    const { job, fields } = await enterJob(routes, call);
    const watch = await routes.watchJob(job.id);
    call.res.set({ 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' }).flushHeaders();
    // The stream is not awaited: an open stream is neither in hand nor late in the request log.
    void stream(routes, call, job, watch, fields).catch((error) => {
      if (!(error instanceof Refusal)) routes.log.error('a stream of events failed', { error });
      // The caller connects again and gets the refusal then.
      call.res.end();
    });
    return null;
  };
}

async function stream(
  routes: JobRoutes,
  { req, res }: KeyedCall,
  { account: accountId, id: jobId }: Job,
  watch: JobWatch,
  fields: readonly Path[],
): Promise<void> {
  res.once('close', watch.close);
  let sentRevision = readLastEventId(req.get('last-event-id'));
  try {
    while (!res.destroyed && req.method !== 'HEAD') {
      if (routes.draining.aborted) {
        await write(res, `retry: ${reconnectMs}\n\n`);
        break;
      }
      const job = await readOwnJob(routes.store, accountId, jobId);
      if (job === null) break;
      const hasEnded = isEnded(job.status);
      const isNew = hasEnded || job.revision !== sentRevision;
      const [body = {}] = isNew ? await viewJobs(routes.store, routes.viewJob, accountId, [job]) : [];
      const text = isNew ? eventOf(job.revision, hasEnded ? 'end' : 'progress', filterFields(body, fields)) : ':\n\n';
      await write(res, text);
      if (hasEnded) break;
      sentRevision = job.revision;
      await watch.changed(routes.rereadMs);
    }
    res.end();
  } finally {
    watch.close();
  }
}

function eventOf(revision: number, event: 'progress' | 'end', body: unknown): string {
  return `id: ${revision}\nevent: ${event}\ndata: ${JSON.stringify(body)}\n\n`;
}

/** Returns the revision that a reconnecting caller has seen; `null` for anything that is none. */
function readLastEventId(header: string | undefined): number | null {
  return header !== undefined && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

/** Writes, and waits while the caller does not read. */
function write(res: Response, text: string): Promise<void> {
  return new Promise((resolve) => {
    if (res.destroyed || res.write(text)) return resolve();
    const goOn = () => {
      res.off('drain', goOn);
      res.off('close', goOn);
      resolve();
    };
    res.once('drain', goOn);
    res.once('close', goOn);
  });
}

import { pipeline } from 'node:stream/promises';
import { Refusal } from '../base/errors.ts';
import { isEnded } from '../model/job.ts';
import { filterFields, type Path } from '../model/select-fields.ts';
import { keyLasts } from '../store/access/authorize.ts';
import type { KeyedCall, KeyedHandler } from './api-call.ts';
import { isGone } from './file-routes.ts';
import { enterJob, type JobRoutes } from './job-routes.ts';
import type { JobWatch } from './job-watch.ts';
import { onLeave } from './on-leave.ts';
import { streamHeaders } from './reply.ts';
import { headerOf } from './request-syntax.ts';

const reconnectMs = 1000;

/** GET of a job's events: `progress` with the Job at each change, `end` with it at its end. Ids are the record's revision. */
export function streamEvents(routes: JobRoutes): KeyedHandler {
  return async (call) => {
    const { job, fields } = await enterJob(routes, call);
    const watch = await routes.watchJob(job);
    const shown = { 'content-type': 'text/event-stream; charset=utf-8', ...streamHeaders };
    call.res.writeHead(200, { ...call.headers, ...shown }).flushHeaders();
    const forget = onLeave(call.res, watch.close);
    // The stream is not awaited: only until it begins is it a request in hand, and does its time in the request log run.
    void pipeline(eventsOf(routes, call, watch, fields), call.res, { end: false })
      .catch((error) => {
        if (!(error instanceof Refusal || isGone(error))) routes.log.error('a stream of events failed', { error });
      })
      .finally(() => {
        forget();
        watch.close();
        // After an error the caller connects again and gets the refusal then.
        call.res.end();
      });
    return null;
  };
}

async function* eventsOf(
  routes: JobRoutes,
  { req, res, key }: KeyedCall,
  watch: JobWatch,
  fields: readonly Path[],
): AsyncGenerator<string, void> {
  let sentRevision = readLastEventId(headerOf(req, 'last-event-id'));
  while (!res.destroyed && req.method !== 'HEAD') {
    if (routes.draining.aborted) return yield `retry: ${reconnectMs}\n\n`;
    const watched = await watch.read();
    if (watched === null) return;
    const { job, position } = watched;
    const hasEnded = isEnded(job.status);
    const isNew = hasEnded || job.revision !== sentRevision;
    // Judged for each event: a key that was deactivated meanwhile reads no more of the account, and gets the refusal when it connects again.
    if (isNew && !(await keyLasts(routes.store, key))) return;
    const body = isNew ? filterFields(routes.viewJob(job, position), fields) : {};
    const unread = setTimeout(() => res.destroy(), routes.unreadMs);
    try {
      // Goes on when the caller has read enough of what was sent.
      yield isNew ? eventOf(job.revision, hasEnded ? 'end' : 'progress', body) : ':\n\n';
    } finally {
      clearTimeout(unread);
    }
    if (hasEnded) return;
    sentRevision = job.revision;
    await watch.changed();
  }
}

function eventOf(revision: number, event: 'progress' | 'end', body: unknown): string {
  return `id: ${revision}\nevent: ${event}\ndata: ${JSON.stringify(body)}\n\n`;
}

/** Returns the revision that a reconnecting caller has seen; `null` for anything that is none. */
function readLastEventId(header: string | undefined): number | null {
  return header !== undefined && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

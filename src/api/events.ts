import { refuse } from '../base/errors.ts';
import { isEnded, type Job } from '../model/job.ts';
import { parseJobId } from '../model/request.ts';
import { refusal, sendRates } from './answer.ts';
import { type Ask, enterFree, type Handler } from './ask.ts';
import { type JobRoutes, rereadMilliseconds } from './jobs.ts';
import { readOwn, showAll } from './show.ts';

const streamsMost = 10_000;
const reconnectMilliseconds = 1000;

/** GET of a job's events: `progress` with the Job at each change, `end` with it at its end. Ids are the record's revision. */
export function streamEvents(routes: JobRoutes, draining: AbortSignal): Handler {
  let streams = 0;
  return async (ask) => {
    const answer = await enterFree(routes.store, ask, routes.statuses);
    if ('reply' in answer) return answer.reply;
    const { rates } = answer.entered;
    const id = parseJobId(String(ask.req.params.id));
    if (!id.ok) return { ...refusal('bad_request', id.sentence), rates };
    const job = await readOwn(routes.store, ask.key.account, id.id);
    if (job === null) return { ...refusal('not_found'), rates };
    if (streams >= streamsMost || draining.aborted) throw refuse('unavailable');
    sendRates(ask.res, rates);
    ask.res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
    ask.res.flushHeaders();
    streams++;
    try {
      await stream(routes, ask, job, draining);
    } finally {
      streams--;
      ask.res.end();
    }
    return null;
  };
}

async function stream(routes: JobRoutes, ask: Ask, first: Job, draining: AbortSignal): Promise<void> {
  const { res, req } = ask;
  if (req.method === 'HEAD') return;
  const watch = await routes.watch(first.id);
  const leave = () => watch.close();
  res.once('close', leave);
  draining.addEventListener('abort', leave);
  let sent = lastSent(req.headers['last-event-id']);
  try {
    while (!res.destroyed && !draining.aborted) {
      const job = await readOwn(routes.store, first.account, first.id);
      if (job === null) return;
      const hasEnded = isEnded(job.status);
      const isNew = hasEnded || job.revision !== sent;
      const [shown] = isNew ? await showAll(routes.store, routes.show, job.account, [job]) : [];
      await write(res, isNew ? eventOf(job.revision, hasEnded ? 'end' : 'progress', shown) : ':\n\n');
      if (hasEnded) return;
      sent = job.revision;
      await watch.changed(rereadMilliseconds);
    }
    if (!res.destroyed) await write(res, `retry: ${reconnectMilliseconds}\n\n`);
  } finally {
    res.off('close', leave);
    draining.removeEventListener('abort', leave);
    watch.close();
  }
}

function eventOf(revision: number, event: 'progress' | 'end', shown: unknown): string {
  return `id: ${revision}\nevent: ${event}\ndata: ${JSON.stringify(shown)}\n\n`;
}

/** The revision that a reconnecting caller has seen; anything else stands for none. */
function lastSent(header: string | string[] | undefined): number | null {
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

/** Waits while the caller does not read. */
function write(res: Ask['res'], text: string): Promise<void> {
  return new Promise((resolve) => {
    if (res.destroyed || res.write(text)) return resolve();
    const go = () => {
      res.off('drain', go);
      res.off('close', go);
      resolve();
    };
    res.once('drain', go);
    res.once('close', go);
  });
}

import { Refusal } from '../base/errors.ts';
import { isEnded, type Job } from '../model/job.ts';
import { filterFields, type Path } from '../model/select-fields.ts';
import type { Ask, Handler } from './ask.ts';
import { enterJob, type JobRoutes } from './job-routes.ts';
import { readOwn, showAll } from './job-view.ts';
import type { Watch } from './job-watch.ts';
import { rateHeaders } from './reply.ts';

const reconnectMilliseconds = 1000;

/** GET of a job's events: `progress` with the Job at each change, `end` with it at its end. Ids are the record's revision. */
export function streamEvents(routes: JobRoutes): Handler {
  return async (ask) => {
    const found = await enterJob(routes, ask);
    if ('reply' in found) return found.reply;
    const { job, rates, flags } = found;
    const watch = await routes.watch(job.id);
    const own = ['content-type', 'text/event-stream; charset=utf-8', 'x-accel-buffering', 'no'];
    ask.res.writeHead(200, [...ask.headers, ...rateHeaders(rates), ...own]);
    ask.res.flushHeaders();
    // The request is answered; what follows is not waited for, so that it neither counts as in hand nor delays the log.
    void stream(routes, ask, job, watch, flags.fields).catch((error) => {
      if (!(error instanceof Refusal)) routes.log.error('a stream of events failed', { error });
      // The caller connects again and hears then what is wrong.
      ask.res.end();
    });
    return null;
  };
}

async function stream(
  routes: JobRoutes,
  { req, res }: Ask,
  { account, id }: Job,
  watch: Watch,
  fields: readonly Path[],
): Promise<void> {
  res.once('close', watch.close);
  let sent = lastSent(req.headers['last-event-id']);
  try {
    while (!res.destroyed && req.method !== 'HEAD') {
      if (routes.draining.aborted) {
        await write(res, `retry: ${reconnectMilliseconds}\n\n`);
        break;
      }
      const job = await readOwn(routes.store, account, id);
      if (job === null) break;
      const hasEnded = isEnded(job.status);
      const isNew = hasEnded || job.revision !== sent;
      const [shown = {}] = isNew ? await showAll(routes.store, routes.show, account, [job]) : [];
      const text = isNew ? eventOf(job.revision, hasEnded ? 'end' : 'progress', filterFields(shown, fields)) : ':\n\n';
      await write(res, text);
      if (hasEnded) break;
      sent = job.revision;
      await watch.changed(routes.rereadMilliseconds);
    }
    res.end();
  } finally {
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

import type { Endpoint } from '../model/job.ts';
import { reducedUsage, usage as usageOf } from '../model/money.ts';
import { parseStats, parseView } from '../model/request-parameters.ts';
import { filterFields } from '../model/select-fields.ts';
import type { MinuteBucket } from '../model/stats.ts';
import { type Engine, snapshot } from '../model/stats.ts';
import { enter } from '../store/access/authorize.ts';
import { readUsage } from '../store/money/read-usage.ts';
import type { RecordStore } from '../store/script.ts';
import { type Handler, isRefused, judgeFlags } from './ask.ts';
import { refusal, refusedReply, type Statuses } from './reply.ts';

/** GET of the usage: everything, or plan and remaining alone. */
export function tellUsage(store: RecordStore, statuses: Statuses): Handler {
  return async (ask) => {
    const seen = await readUsage(store, ask.key);
    if (isRefused(seen)) return refusedReply(seen, statuses);
    const { rates } = seen;
    const view = parseView(ask.given);
    const flags = judgeFlags(ask);
    if ('reply' in flags) return { ...flags.reply, rates };
    if (!view.ok) return { ...refusal('bad_request', view.sentence), rates };
    const body =
      view.view === 'reduced'
        ? reducedUsage(seen.books, seen.plan)
        : { ...usageOf(seen.books, seen.account, seen.plan, seen.key, store.clock.now()) };
    return { status: 200, body: filterFields(body, flags.flags.fields), rates };
  };
}

/** The endpoint whose ends an engine's health counts. */
const endpointOf: Readonly<Record<Engine, Endpoint>> = { video: 'video', audio: 'audio', media: 'metadata' };

/** GET of the statistics, for accounts that may read them. */
export function tellStats(
  store: RecordStore,
  statuses: Statuses,
  minutesOf: (endpoint: Endpoint) => Promise<readonly MinuteBucket[]>,
): Handler {
  return async (ask) => {
    const seen = await enter(store, ask.key);
    if (isRefused(seen)) return refusedReply(seen, statuses);
    const { rates } = seen;
    if (!seen.mayReadStats) return { ...refusal('forbidden'), rates };
    const flags = judgeFlags(ask);
    if ('reply' in flags) return { ...flags.reply, rates };
    const asked = parseStats(ask.given);
    if (!asked.ok) return { ...refusal(asked.code, asked.sentence), rates };
    const minutes = await minutesOf(endpointOf[asked.engine]);
    const body = { ...snapshot(asked.engine, asked.path, minutes, store.clock.now()) };
    return { status: 200, body: filterFields(body, flags.flags.fields), rates };
  };
}

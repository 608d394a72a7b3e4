import { refuse } from '../base/errors.ts';
import { reducedUsage, usage } from '../model/money.ts';
import { historyParameters, parseStats, usageParameters } from '../model/request-parameters.ts';
import { filterFields } from '../model/select-fields.ts';
import { endpointsOfEngines, healthOf } from '../model/stats.ts';
import { historyRange, isInRange, maxHistoryDays } from '../model/usage-history.ts';
import { readUsage } from '../store/access/read-usage.ts';
import { type HistoryDay, readHistory } from '../store/log/read-history.ts';
import type { RecordStore } from '../store/script.ts';
import type { KeyedHandler } from './api-call.ts';
import { enterFree, requireFlags, requireParameters } from './free-call.ts';
import { requireAllowed } from './reply.ts';
import type { StatsCache } from './stats-cache.ts';

const badRange = `Bad Request: from must not be after to, and not ${maxHistoryDays} days or more before it`;

/** GET of the usage: everything, or plan and remaining alone. */
export function getUsage(store: RecordStore): KeyedHandler {
  return async (call) => {
    const { balances, plan, account, key } = requireAllowed(call, await readUsage(store, call.key));
    const { fields } = requireFlags(call);
    const { view } = requireParameters(usageParameters, call.given);
    const body =
      view === 'reduced' ? reducedUsage(balances, plan) : { ...usage(balances, account, plan, key, store.clock.now()) };
    return { status: 200, body: filterFields(body, fields) };
  };
}

/** GET of what became of the requests by day and key; calls of one account at the same time share one reading, whatever their days. */
export function getHistory(store: RecordStore): KeyedHandler {
  const running = new Map<string, Promise<HistoryDay[]>>();
  const read = (account: string) => {
    const shared = running.get(account) ?? readHistory(store, account).finally(() => running.delete(account));
    running.set(account, shared);
    return shared;
  };
  return async (call) => {
    await enterFree(store, call);
    const { fields } = requireFlags(call);
    const { from, to } = requireParameters(historyParameters, call.given);
    const range = historyRange(from, to, store.clock.now());
    if (range === null) throw refuse('bad_request', badRange);
    const days = (await read(call.key.accountId)).filter(({ day }) => isInRange(day, range));
    return { status: 200, body: filterFields({ days }, fields) };
  };
}

export function getStats(store: RecordStore, cache: StatsCache): KeyedHandler {
  return async (call) => {
    const { mayReadStats } = await enterFree(store, call);
    if (!mayReadStats) throw refuse('forbidden');
    const { fields } = requireFlags(call);
    const asked = parseStats(call.given);
    if (!asked.ok) throw refuse(asked.code, asked.sentence);
    const minutes = await cache.read(endpointsOfEngines[asked.engine]);
    const body = { ...healthOf(asked.engine, asked.path, minutes, store.clock.now()) };
    return { status: 200, body: filterFields(body, fields) };
  };
}

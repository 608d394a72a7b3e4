import type { Caller } from './access/authorize.ts';
import type { RecordStore, Reply } from './script.ts';

/** Judges calls of one key in one step; answers a reply for each, or one that is meant for all. */
type Judge<C> = (store: RecordStore, caller: Caller, calls: readonly C[]) => Promise<Reply>;

interface Group<C> {
  readonly calls: C[];
  readonly reply: Promise<Reply>;
}

/** A step that blocks Redis for longer lets others wait. */
const mostTogether = 64;

/**
 * Calls of one key that are made in the same turn of the event loop go in one step: each step has a price, here and in
 * Redis, before it does anything. A single call costs what it would alone. Order is kept among the calls of one key only.
 * The step answers {'judged', a reply for each call}; any other reply is the answer to all.
 */
export function together<C>(judge: Judge<C>): (store: RecordStore, caller: Caller, call: C) => Promise<Reply> {
  const groups = new WeakMap<RecordStore, Map<string, Group<C>>>();
  const join = (store: RecordStore, caller: Caller): Group<C> => {
    const waiting = groups.get(store) ?? new Map<string, Group<C>>();
    groups.set(store, waiting);
    const name = `${caller.account}/${caller.hash}`;
    const present = waiting.get(name);
    if (present && present.calls.length < mostTogether) return present;
    const calls: C[] = [];
    // It goes when what the event loop has at hand is done.
    const reply = new Promise((resolve) => setImmediate(resolve)).then(() => {
      if (waiting.get(name)?.calls === calls) waiting.delete(name);
      return judge(store, caller, calls);
    });
    const group = { calls, reply };
    waiting.set(name, group);
    return group;
  };
  return async (store, caller, call) => {
    const group = join(store, caller);
    const place = group.calls.push(call);
    const reply = await group.reply;
    return reply[0] === 'judged' ? (reply[place] as Reply) : reply;
  };
}

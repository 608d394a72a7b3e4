import type { KeyedHandler } from '../api/api-call.ts';
import type { FindCaller } from '../api/caller-address.ts';
import { type ApiReply, goneStatus } from '../api/reply.ts';
import { beginTrace, recordRequest } from '../api/request-trace.ts';
import { allowedMethods, keyedRoutes, pathTemplate } from '../api/routes.ts';
import { nullWhen } from '../base/errors.ts';
import type { Traces } from '../base/traces.ts';
import { type KeyText, keyIdOf } from '../model/api-key.ts';
import { createKey, newKey } from '../store/accounts/create-key.ts';
import { findKeyHash } from '../store/accounts/read-keys.ts';
import type { RequestLogWriter } from '../store/log/write-lines.ts';
import type { RecordStore } from '../store/script.ts';
import type { DashboardCall } from './dashboard-app.ts';

type HandRoute = 'video' | 'audio' | 'metadata' | 'retry';

/** Carries out a call of the public API for a person, with the members of the body as its parameters. */
export type CallByHand = (call: DashboardCall, route: HandRoute) => Promise<ApiReply | null>;

interface ByHandParts {
  readonly store: RecordStore;
  readonly handlers: Readonly<Record<HandRoute, KeyedHandler>>;
  readonly lines: Pick<RequestLogWriter, 'add'>;
  readonly findCaller: FindCaller;
  readonly traces: Traces | null;
}

/** Alias of the key with which people start jobs by hand: its secret is thrown away when it is made. */
const ownAlias = 'dashboard';

/** Makes calls that are admitted, limited, charged and logged like those of any other key of the account. */
export function makeCallByHand({ store, handlers, lines, findCaller, traces }: ByHandParts): CallByHand {
  return async ({ req, res, given, accountId }, name) => {
    const began = performance.now();
    const row = keyedRoutes[name];
    const route = { ...row, allowed: allowedMethods(row), template: pathTemplate(row.paths[0]) };
    const key = await ownKey(store, accountId);
    const caller = findCaller(req.socket.remoteAddress, req.get('x-forwarded-for'));
    const idle = <T>(wait: () => Promise<T>) => wait();
    const trace = traces && route.isTraced ? beginTrace(req.get('traceparent')) : null;
    const made = { req, res, headers: {}, route, caller, began, given, trace, logged: key };
    const handled = handlers[name]({ ...made, key, fault: null, idle });
    // A refusal has them too.
    const reply = await handled.finally(() => res.set(made.headers));
    if (traces)
      recordRequest(traces, made, reply, reply?.loggedStatus ?? reply?.status ?? goneStatus, store.clock.now());
    // The person has gone while the source was asked.
    if (reply !== null && !reply.isLogged) {
      lines.add(key, {
        at: store.clock.now(),
        endpoint: `${req.method} ${route.template}`,
        status: reply.loggedStatus ?? reply.status,
        duration_ms: Math.round(performance.now() - began),
        ip: caller.ip,
        credits: 0,
      });
    }
    return reply;
  };
}

/** Returns the key of calls by hand, and makes it at the first one. */
async function ownKey(store: RecordStore, accountId: string): Promise<KeyText> {
  const known = await findKeyHash(store, accountId, ownAlias).catch(nullWhen('not_found'));
  if (known !== null) return { accountId, hash: known, keyId: keyIdOf(known) };
  const { id, hash: fresh } = newKey(accountId);
  const own = { id, alias: ownAlias, hash: fresh, category: 'by hand' };
  await createKey(store, accountId, own).catch(nullWhen('already_exists'));
  const hash = await findKeyHash(store, accountId, ownAlias);
  return { accountId, hash, keyId: keyIdOf(hash) };
}

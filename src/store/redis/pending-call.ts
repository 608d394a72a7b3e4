import { LostAnswer, Refusal } from '../../base/errors.ts';
import { replicaMs } from './durability-watch.ts';
import { isReply, type RedisClient } from './redis-client.ts';

const retryAfterSeconds = 2;
/** Errors of a Redis that cannot run a command now. */
const busy = /^(LOADING|READONLY|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|MISCONF|OOM|BUSY)\b/;

/** A call that waits for its answer. */
export interface PendingCall {
  /** When it is given up, by `performance.now`. */
  endsAt: number;
  /** True once it was answered or given up. */
  isOver: boolean;
  /** The connection that it used last. */
  client?: RedisClient;
  /** The error for which it was sent to another node. */
  error?: Error;
}

/** No replica had a change in time: after a takeover it may be gone. */
export class MissingReplica extends Error {
  constructor() {
    super(`No replica had the change within ${replicaMs} ms`);
  }
}

/** True for errors of a Redis that is away; false when a command or a reply is wrong. */
export function meansAway(error: unknown): boolean {
  if (isReply(error)) return isReply(error, busy);
  return !(error instanceof Refusal || error instanceof TypeError);
}

/** A command of the call was sent, and Redis neither answered nor refused it: it may have run. */
function isLost({ client, error }: PendingCall, cause: unknown): boolean {
  return client !== undefined && error === undefined && !isReply(cause) && !(cause instanceof MissingReplica);
}

export function unavailable(cause: unknown, sentence?: string, call?: PendingCall): Refusal {
  const reason = sentence && cause instanceof Error ? `${sentence}: ${cause.message}` : sentence;
  const Kind = call && isLost(call, cause) ? LostAnswer : Refusal;
  return Object.assign(new Kind('unavailable', reason, retryAfterSeconds), { cause });
}

import type { Store } from 'express-rate-limit';
import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { personIdOf, readEmail } from '../model/person.ts';
import { clearBlock } from '../store/access/clear-block.ts';
import { countSignIn, takeSignInsBack } from '../store/people/count-sign-in.ts';
import type { RecordStore } from '../store/script.ts';
import type { BlockedAddresses, FindCaller } from './caller-address.ts';
import { limitRequests, type RequestLimit } from './request-limit.ts';

/** Limits of failed sign-ins. Their counts are in the record, for all replicas; successes never count. */
export interface SignInLimits {
  /**
   * Counts a sign-in with a password by the e-mail address in its body, before the password is verified, so that guesses at the same
   * moment count too. Its success is taken back.
   */
  readonly byEmail: RequestLimit;
  /** Counts a sign-in that has failed by the address of its caller, as a wrong API key does (D38). */
  readonly byAddress: RequestLimit;
}

interface LimitParts {
  readonly store: RecordStore;
  readonly blocked: BlockedAddresses;
  readonly findCaller: FindCaller;
  /** Failures of an address in a window that block it (D38). */
  readonly failures: { readonly max: number; readonly windowMs: number };
  readonly log: Log;
}

const emailWindowMs = 15 * 60_000;
const maxFailuresOfEmail = 10;
const emailSentence = 'Too many failed sign-ins with this e-mail address: try again later';

export function limitSignIns({ store, blocked, findCaller, failures, log }: LimitParts): SignInLimits {
  const warn = (error: unknown) => log.warn('a sign-in that succeeded still counts as failed', { error });
  return {
    byEmail: limitRequests({
      windowMs: emailWindowMs,
      limit: maxFailuresOfEmail,
      keyOf: ({ body }) => personIdOf(readEmail(body.email).value ?? ''),
      refusal: (seconds) => refuse('rate_limited', emailSentence, seconds),
      store: emailCounts(store),
      takesBack: { warn, error: warn },
    }),
    byAddress: limitRequests({
      windowMs: failures.windowMs,
      limit: failures.max,
      keyOf: (req) => findCaller(req.socket.remoteAddress, req.get('x-forwarded-for')).blame,
      refusal: (seconds) => refuse('ip_blocked', undefined, seconds),
      store: addressCounts(store, blocked),
    }),
  };
}

/** Sign-ins of each person in a window that begins with the first. */
export function emailCounts(store: RecordStore): Store {
  return {
    localKeys: false,
    async increment(personId) {
      const { count, leftMs } = await countSignIn(store, personId, emailWindowMs);
      return { totalHits: count, resetTime: inMs(leftMs) };
    },
    decrement: (personId) => takeSignInsBack(store, personId, 1),
    resetKey: (personId) => takeSignInsBack(store, personId, Number.MAX_SAFE_INTEGER),
  };
}

/** Failures of each address and its block, which no failure meanwhile makes longer. Only failures come here: none is ever taken back. */
export function addressCounts(store: RecordStore, blocked: BlockedAddresses): Store {
  const get = (address: string) => {
    const seconds = blocked.waitSeconds(address);
    return seconds === null ? undefined : { totalHits: Number.POSITIVE_INFINITY, resetTime: inMs(seconds * 1000) };
  };
  return {
    localKeys: false,
    get,
    increment: async (address) =>
      get(address) ?? { totalHits: await blocked.countFailure(address), resetTime: undefined },
    decrement: () => {},
    resetKey: async (address) => void (await clearBlock(store, address)),
  };
}

/** The clock of the record may differ from that of this process. */
function inMs(leftMs: number): Date {
  return new Date(Date.now() + leftMs);
}

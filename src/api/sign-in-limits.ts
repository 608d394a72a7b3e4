import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { personIdOf, readEmail } from '../model/person.ts';
import type { RecordStore } from '../store/script.ts';
import type { BlockedAddresses, FindCaller } from './caller-address.ts';
import { limitRequests, type RequestLimit } from './request-limit.ts';
import { addressCounts, emailCounts, emailWindowMs } from './sign-in-counts.ts';

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

import type { IncomingMessage } from 'node:http';
import { refuse } from '../base/errors.ts';
import { countInWindows } from '../base/window-count.ts';
import type { FindCaller } from './caller-address.ts';
import { headerOf } from './request-syntax.ts';

/** Counts a request that needs no key or session; throws `rate_limited` when there were too many. */
export type OpenLimit = (req: IncomingMessage) => void;

const windowMs = 60_000;
const maxOpenRequests = 600;
const sentence = `More than ${maxOpenRequests} requests in a minute came from this address: try again later`;

/**
 * Counts the requests that need no key or session, of each address in the memory of this process: 600 a minute, an IPv6 /64 as one. A proxy
 * that is not trusted forwards for many and is not counted.
 */
export function limitOpenRequests(findCaller: FindCaller): OpenLimit {
  const countAddress = countInWindows(windowMs);
  return (req) => {
    const { blame } = findCaller(req.socket.remoteAddress, headerOf(req, 'x-forwarded-for'));
    if (blame === null) return;
    const { count, secondsLeft } = countAddress(blame);
    if (count > maxOpenRequests) throw refuse('rate_limited', sentence, secondsLeft);
  };
}

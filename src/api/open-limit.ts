import { refuse } from '../base/errors.ts';
import type { FindCaller } from './caller-address.ts';
import { limitRequests, type RequestLimit } from './request-limit.ts';

const windowMs = 60_000;
const maxOpenRequests = 600;
const sentence = `More than ${maxOpenRequests} requests in a minute came from this address: try again later`;

/**
 * Counts the requests that need no key or session, of each address in the memory of this process: 600 a minute, an IPv6 /64 as one. A proxy
 * that is not trusted forwards for many and is not counted.
 */
export function limitOpenRequests(findCaller: FindCaller): RequestLimit {
  return limitRequests({
    windowMs,
    limit: maxOpenRequests,
    keyOf: (req) => findCaller(req.socket.remoteAddress, req.get('x-forwarded-for')).blame,
    refusal: (seconds) => refuse('rate_limited', sentence, seconds),
  });
}

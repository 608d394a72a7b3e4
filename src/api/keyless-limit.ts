import type { IncomingMessage, ServerResponse } from 'node:http';
import { CountsByName } from '../base/counts.ts';
import { refuse } from '../base/errors.ts';
import { countInWindows } from '../base/window-count.ts';
import type { FindCaller } from './caller-address.ts';
import { headerOf } from './request-syntax.ts';

/** Counts a request that needs no key or session; throws `rate_limited` when there were too many, or too many are not yet answered. */
export type KeylessLimit = (req: IncomingMessage, res: ServerResponse) => void;

const windowMs = 60_000;
const maxKeylessRequests = 600;
const sentence = `More than ${maxKeylessRequests} requests in a minute came from this address: try again later`;
/** A download keeps a connection and a file open for as long as its caller takes. */
const maxAtOnce = 200;
const busySentence = `${maxAtOnce} requests of this address, such as downloads, are still being answered: try again when one has ended`;
const busySeconds = 5;

/**
 * Counts the requests that need no key or session, of each address in the memory of this process: 600 a minute and 200 at once, an IPv6 /64 as
 * one. A proxy that is not trusted forwards for many and is not counted.
 */
export function limitKeylessRequests(findCaller: FindCaller): KeylessLimit {
  const countAddress = countInWindows(windowMs);
  const unanswered = new CountsByName();
  return (req, res) => {
    const { blame } = findCaller(req.socket.remoteAddress, headerOf(req, 'x-forwarded-for'));
    if (blame === null) return;
    const { count, secondsLeft } = countAddress(blame);
    if (count > maxKeylessRequests) throw refuse('rate_limited', sentence, secondsLeft);
    if (unanswered.of(blame) >= maxAtOnce) throw refuse('rate_limited', busySentence, busySeconds);
    // No close follows for a caller that is gone.
    if (res.closed) return;
    unanswered.change(blame, 1);
    res.once('close', () => unanswered.change(blame, -1));
  };
}

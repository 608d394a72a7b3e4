import type { Request, Response } from 'express';
import { rateLimit } from 'express-rate-limit';
import { refuse } from '../base/errors.ts';
import type { FindCaller } from './caller-address.ts';

/** Refuses a request that needs no key or session when its address has sent too many. */
export type OpenLimit = (req: Request, res: Response) => Promise<void>;

const windowMs = 60_000;
export const maxOpenRequests = 600;
const sentence = `More than ${maxOpenRequests} requests in a minute came from this address: try again later`;

/**
 * Counts the requests of each address in the memory of this process: 600 a minute, an IPv6 /64 as one. A proxy that is not trusted forwards
 * for many and is not counted.
 */
export function limitOpenRequests(findCaller: FindCaller): OpenLimit {
  const blameOf = (req: Request) => findCaller(req.socket.remoteAddress, req.get('x-forwarded-for')).blame;
  const judge = rateLimit({
    windowMs,
    limit: maxOpenRequests,
    standardHeaders: false,
    legacyHeaders: false,
    // The address is found by our own rule about proxies, not by Express's.
    validate: false,
    keyGenerator: (req) => blameOf(req) ?? '',
    skip: (req) => blameOf(req) === null,
    handler: (req, _res, next) => next(refuse('rate_limited', sentence, secondsLeft(req))),
  });
  return (req, res) =>
    new Promise((resolve, reject) => {
      void judge(req, res, (error?: unknown) => (error === undefined ? resolve() : reject(error)));
    });
}

function secondsLeft(req: Request): number {
  const { resetTime } = (req as Request & { readonly rateLimit?: { readonly resetTime?: Date } }).rateLimit ?? {};
  const leftMs = resetTime === undefined ? windowMs : resetTime.getTime() - Date.now();
  return Math.max(1, Math.ceil(leftMs / 1000));
}

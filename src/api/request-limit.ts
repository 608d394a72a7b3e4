import type { Request, Response } from 'express';
import { type Logger, rateLimit, type Store } from 'express-rate-limit';
import type { Refusal } from '../base/errors.ts';

/** Counts a request; throws its refusal when there were too many. */
export type RequestLimit = (req: Request, res: Response) => Promise<void>;

interface LimitOptions {
  readonly windowMs: number;
  readonly limit: number;
  /** Returns under which name a request counts; `null` for one that is not counted. */
  readonly keyOf: (req: Request) => string | null;
  /** `seconds`: until the window ends. */
  readonly refusal: (seconds: number) => Refusal;
  /** Counts elsewhere than in the memory of this process. */
  readonly store?: Store;
  /** A request that was answered with success is taken back; here go the errors of that, which no answer waits for. Absent where each counts. */
  readonly takesBack?: Logger;
}

/** Makes a limit that express-rate-limit judges. */
export function limitRequests({ windowMs, limit, keyOf, refusal, store, takesBack }: LimitOptions): RequestLimit {
  const judge = rateLimit({
    windowMs,
    limit,
    standardHeaders: false,
    legacyHeaders: false,
    // The address is found by our own rule about proxies, not by Express's.
    validate: false,
    keyGenerator: (req) => keyOf(req) ?? '',
    skip: (req) => keyOf(req) === null,
    ...(store && { store }),
    ...(takesBack && { skipSuccessfulRequests: true, logger: takesBack }),
    handler: (req, _res, next) => next(refusal(secondsLeft(req, windowMs))),
  });
  return (req, res) =>
    new Promise((resolve, reject) => {
      void judge(req, res, (error?: unknown) => (error === undefined ? resolve() : reject(error)));
    });
}

function secondsLeft(req: Request, windowMs: number): number {
  const { resetTime } = (req as Request & { readonly rateLimit?: { readonly resetTime?: Date } }).rateLimit ?? {};
  const leftMs = resetTime === undefined ? windowMs : resetTime.getTime() - Date.now();
  return Math.max(1, Math.ceil(leftMs / 1000));
}

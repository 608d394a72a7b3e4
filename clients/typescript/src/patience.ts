import { TrawlError } from './errors.ts';

/** Time for which a silent service is waited for, counted from the last sign of life. */
export interface Patience {
  /** The service was heard. */
  readonly heard: () => void;
  /** Waits before the next try, at least so long; throws the error when the time is over. */
  readonly wait: (error: TrawlError, signal: AbortSignal | undefined) => Promise<void>;
}

const firstMs = 200;
const maxMs = 10_000;
/** Codes of Node for what no waiting makes right: a certificate, and https asked of a port that speaks http. */
const wrongTls = /^(?:ERR_SSL_WRONG_VERSION_NUMBER|ERR_TLS_CERT_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
/** Words of Node for a proxy that wants another password, or opens no way to this host. */
const barred = /^Proxy response \((?:403|407)\)/;

export function makePatience(patienceMs: number): Patience {
  let since = performance.now();
  let failures = 0;
  return {
    heard: () => {
      since = performance.now();
      failures = 0;
    },
    wait: async (error, signal) => {
      failures += 1;
      // Half of the wait is random, so that many clients do not come back at once.
      const backoffMs = Math.min(maxMs, firstMs * 2 ** (failures - 1)) * (0.5 + Math.random() / 2);
      const waitMs = Math.max(backoffMs, (error.retryAfterSeconds ?? 0) * 1000);
      if (performance.now() + waitMs - since > patienceMs) throw error;
      await pause(waitMs, signal);
    },
  };
}

/** Returns the error of a call that brought no answer. */
export function unreachable(url: string, cause: unknown, retryable = true): TrawlError {
  // The rest of the URL may be a signature.
  const sentence = `No way to ${new URL(url).origin}: ${wordsOf(innermost(cause))}`;
  return new TrawlError('unreachable', sentence, { cause, retryable });
}

/** Returns true for an error that no waiting ends: a wrong certificate, https asked of a port that speaks http, a proxy that opens no way. */
export function isHopeless(error: unknown): boolean {
  const inner = innermost(error);
  return wrongTls.test(codeOf(inner)) || barred.test(wordsOf(inner));
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message || codeOf(error) : String(error);
}

/** Returns the error that was first: the `fetch` of Node says no more than that it failed, and has the reason as its cause. */
function innermost(error: unknown): unknown {
  const inner = error instanceof AggregateError ? error.errors[0] : error instanceof Error ? error.cause : undefined;
  return inner instanceof Error ? innermost(inner) : error;
}

/** Waits so long; rejects at once when the signal aborts. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener('abort', end, { once: true });
  });
}

/**
 * Does something under a signal that is aborted after so long, or with the given one. Node 20 collects an `AbortSignal.timeout` that
 * `AbortSignal.any` alone refers to, and never aborts then.
 */
export async function within<T>(
  ms: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`nothing was answered for ${ms / 1000} s`)), ms);
  try {
    return await work(AbortSignal.any([limit.signal, ...(signal ? [signal] : [])]));
  } finally {
    clearTimeout(timer);
  }
}

export interface WebhookAttempt {
  /** Its number; it begins anew with 1 when the webhook is sent again. */
  readonly attempt: number;
  readonly at: number;
  readonly ms: number;
  /** `null` without an answer. */
  readonly status: number | null;
}

/** `refused` is final; `failed` and `hung`, without an answer in time, may be repeated. `unsent`: the proxy is away, so no receiver was asked. */
export type WebhookResult =
  | { readonly is: 'answered'; readonly status: number }
  | { readonly is: 'refused' | 'failed' | 'hung' | 'unsent'; readonly why: string };

export const maxWebhookAttempts = 3;

/**
 * Most characters of all attempts of a webhook as the record keeps them: Redis gives a hash with a longer value a form of several times
 * the size (its own `hash-max-listpack-value` is 64). Three attempts always fit, five do not; of a webhook that is sent again the oldest are dropped.
 */
export const maxTriedLength = 64;

/** Reads attempts as the record keeps them: number, milliseconds since its creation and duration, both in base 16, and the status. */
export function readTried(tried: string, createdAt: number): WebhookAttempt[] {
  return tried.split(' ').flatMap((one) => {
    const [attempt = '', since = '', ms = '', status] = one.split(':');
    if (status === undefined) return [];
    const at = createdAt + Number.parseInt(since, 16);
    return [
      { attempt: Number(attempt), at, ms: Number.parseInt(ms, 16), status: status === '' ? null : Number(status) },
    ];
  });
}

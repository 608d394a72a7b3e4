import type { components } from './api-types.ts';
import { TrawlError } from './errors.ts';

type Schemas = components['schemas'];

/**
 * Body of a webhook: the end of a job or of a batch, told apart by `status`, or a test that a person sends from the dashboard, which alone has no
 * `status`.
 */
export type WebhookEvent = Schemas['WebhookCompleted' | 'WebhookFailed' | 'WebhookBatch' | 'WebhookTest'];

export interface WebhookOptions {
  /** Signing secret of the account, `whsec_…`; several while one is being replaced. */
  readonly secret: string | readonly string[];
  /** Largest age of a post in seconds; 300 unless given. */
  readonly toleranceSeconds?: number;
  /** Unix time in seconds, for tests. */
  readonly now?: number;
}

type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Returns the event of a genuine post; throws `bad_signature` for any other. `body` is the text as received, before parsing. */
export async function verifyWebhook(
  body: string,
  headers: WebhookHeaders,
  { secret, toleranceSeconds = 300, now = Date.now() / 1000 }: WebhookOptions,
): Promise<WebhookEvent> {
  const secrets = typeof secret === 'string' ? [secret] : secret;
  const keys = await Promise.all(secrets.map(keyOf));
  if (keys.length === 0) throw bad('No webhook secret was given');
  const [id, time, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    read(headers, name),
  );
  if (!id || !time || !signatures) throw bad('The post carries no signature');
  if (!(Math.abs(now - Number(time)) <= toleranceSeconds)) throw bad('The post is too old, or comes from the future');
  const text = new TextEncoder().encode(`${id}.${time}.${body}`);
  for (const key of keys) {
    for (const signature of signatures.split(' ')) {
      const [version, given = ''] = signature.split(',');
      const wanted = version === 'v1' ? decode(given) : null;
      // `verify` compares in constant time.
      if (wanted !== null && (await crypto.subtle.verify('HMAC', key, wanted, text))) return JSON.parse(body);
    }
  }
  throw bad('The signature of the post is wrong');
}

const minKeyBytes = 24;
const mac = { name: 'HMAC', hash: 'SHA-256' };

function read(headers: WebhookHeaders, name: string): string | undefined {
  // A `Headers` of another `fetch` than that of the platform is no instance of this one.
  if (isHeaders(headers)) return headers.get(name) ?? undefined;
  const key = Object.keys(headers).find((one) => one.toLowerCase() === name);
  const value = key === undefined ? undefined : headers[key];
  return typeof value === 'string' ? value : value?.[0];
}

function isHeaders(headers: WebhookHeaders): headers is Headers {
  return typeof headers.get === 'function';
}

/** Returns the key in a secret; throws for one that is none, by which a forged post could pass. */
async function keyOf(secret: string) {
  const bytes = decode(String(secret).replace(/^whsec_/, ''));
  if (bytes === null || bytes.length < minKeyBytes)
    throw bad('The webhook secret must be whsec_ and the base64 of at least 24 bytes, as the service shows it');
  return crypto.subtle.importKey('raw', bytes, mac, false, ['verify']);
}

function decode(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  } catch {
    // It is no base64.
    return null;
  }
}

function bad(sentence: string): TrawlError {
  return new TrawlError('bad_signature', sentence);
}

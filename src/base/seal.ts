import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

const version = 'v1.';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** By secret and purpose: there are few of both. */
const derivedKeys = new WeakMap<Uint8Array, Map<string, KeyObject>>();

interface SealOptions {
  /** 32 bytes. */
  readonly secret: Uint8Array;
  /** The secret before or the one to come: what it signed and sealed is accepted, too. The present one may be among them. */
  readonly old?: readonly Uint8Array[] | null;
}

/** Signs and seals texts. What is made for one purpose is worth nothing for another. */
export interface Seal {
  readonly sign: (purpose: string, text: string) => string;
  /** Returns true if `sign` made this signature for the same purpose and text. */
  readonly verify: (purpose: string, text: string, signature: string) => boolean;
  /** Returns what `sign` returns where the other secret is the current one; `null` without one. */
  readonly signOtherwise: (purpose: string, text: string) => string | null;
  readonly seal: (purpose: string, plain: string) => string;
  /** Returns the text that was sealed for this purpose, or `null` for anything else. */
  readonly open: (purpose: string, sealed: string) => string | null;
}

/** Reads its options at each use, because secrets change while a process runs. */
export function makeSeal(options: SealOptions): Seal {
  const others = () => (options.old ?? []).filter((one) => !Buffer.from(one).equals(options.secret));
  const secrets = () => [options.secret, ...others()];
  if (secrets().some((one) => one.length !== keyBytes)) throw new Error(`a secret must be ${keyBytes} bytes`);
  return {
    sign: (purpose, text) => sign(options.secret, purpose, text),
    verify: (purpose, text, signature) => secrets().some((one) => isEqual(sign(one, purpose, text), signature)),
    signOtherwise: (purpose, text) => {
      const [other] = others();
      return other ? sign(other, purpose, text) : null;
    },
    seal: (purpose, plain) => seal(options.secret, purpose, plain),
    open: (purpose, sealed) => {
      const bytes = readSealed(sealed);
      if (!bytes) return null;
      for (const one of secrets()) {
        const plain = open(one, purpose, bytes);
        if (plain !== null) return plain;
      }
      return null;
    },
  };
}

function sign(secret: Uint8Array, purpose: string, text: string): string {
  return createHmac('sha256', deriveKey(secret, 'sign', purpose))
    .update(text)
    .digest('base64url');
}

function seal(secret: Uint8Array, purpose: string, plain: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', deriveKey(secret, 'seal', purpose), nonce);
  const hidden = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
  return version + Buffer.concat([nonce, cipher.getAuthTag(), hidden]).toString('base64url');
}

/** Returns the bytes of a sealed text, or `null` unless it is spelled exactly as `seal` spells them. */
function readSealed(sealed: string): Buffer | null {
  const text = sealed.slice(version.length);
  const bytes = Buffer.from(text, 'base64url');
  // The decoder skips what it does not know: without this, an altered text could still open.
  const exact = sealed.startsWith(version) && bytes.toString('base64url') === text;
  return exact && bytes.length >= nonceBytes + tagBytes ? bytes : null;
}

function open(secret: Uint8Array, purpose: string, bytes: Buffer): string | null {
  const nonce = bytes.subarray(0, nonceBytes);
  const tag = bytes.subarray(nonceBytes, nonceBytes + tagBytes);
  const decipher = createDecipheriv('aes-256-gcm', deriveKey(secret, 'seal', purpose), nonce);
  decipher.setAuthTag(tag);
  const plain = decipher.update(bytes.subarray(nonceBytes + tagBytes));
  try {
    return Buffer.concat([plain, decipher.final()]).toString('utf8');
  } catch {
    // `final` throws when the tag does not fit: altered, or sealed with another secret or for another purpose.
    return null;
  }
}

/** Returns the key of a purpose, derived once: a page of jobs signs 100 links, and deriving takes most of the time of a signature. */
function deriveKey(secret: Uint8Array, use: 'sign' | 'seal', purpose: string): KeyObject {
  const known = derivedKeys.get(secret) ?? new Map<string, KeyObject>();
  derivedKeys.set(secret, known);
  const name = `trawl ${use} ${purpose}`;
  const key = known.get(name) ?? createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', name, keyBytes)));
  known.set(name, key);
  return key;
}

function isEqual(expected: string, given: string): boolean {
  const [left, right] = [Buffer.from(expected), Buffer.from(given)];
  return left.length === right.length && timingSafeEqual(left, right);
}

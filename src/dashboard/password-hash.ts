import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { refuse } from '../base/errors.ts';

const deriveNow = promisify(argon2);
/** OWASP's second choice for argon2id: 19 MiB, two passes. */
const cost = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const saltBytes = 16;
const tagLength = 32;
const form = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([\w+/]+)\$([\w+/]+)$/;
/** Compared with the passwords of people who have none, so that an answer takes as long for a person who does not exist. */
const nobody = `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

/** Two at once leave threads to files and DNS; more waiting than these would only delay everybody. */
const maxRunning = 2;
const maxWaiting = 50;
let running = 0;
const waiting: (() => void)[] = [];

/** Derives a hash when its turn has come; throws `unavailable` when too many wait. */
async function derive(...given: Parameters<typeof deriveNow>): Promise<Buffer> {
  if (running >= maxRunning) {
    if (waiting.length >= maxWaiting) throw refuse('unavailable');
    await new Promise<void>((resolve) => waiting.push(resolve));
  } else running++;
  try {
    return await deriveNow(...given);
  } finally {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next();
  }
}

/** Returns the argon2id hash of a password with a salt of its own, in the usual text form. */
export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(saltBytes);
  const tag = await derive('argon2id', { message: password.normalize('NFC'), nonce, ...cost, tagLength });
  return `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=${cost.parallelism}$${writeBytes(nonce)}$${writeBytes(tag)}`;
}

/** Returns true if a hash is of this password; '' is the hash of no password, and takes as long. */
export async function isPassword(password: string, hash: string): Promise<boolean> {
  const [, memory, passes, parallelism, salt, wanted] = form.exec(hash || nobody) ?? [];
  if (salt === undefined || wanted === undefined) throw new Error('the hash of a password cannot be read');
  const parameters = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism), tagLength };
  const nonce = Buffer.from(salt, 'base64');
  const tag = await derive('argon2id', { message: password.normalize('NFC'), nonce, ...parameters });
  const expected = Buffer.from(wanted, 'base64');
  return tag.length === expected.length && timingSafeEqual(tag, expected) && hash !== '';
}

function writeBytes(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}

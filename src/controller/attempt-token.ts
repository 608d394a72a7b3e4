import type { Seal } from '../base/seal.ts';
import type { AttemptOf } from '../runners/runner.ts';

const purpose = 'attempt';

/** A token that is good for one attempt alone. */
export function makeToken({ job, attempt }: AttemptOf, sign: Seal['sign']): string {
  return `${job}.${attempt}.${sign(purpose, `${job}.${attempt}`)}`;
}

/** The attempt of a token; `null` when it is not ours. */
export function readToken(token: string, verify: Seal['verify']): AttemptOf | null {
  const [, job, attempt, signature] = /^([0-9a-f-]{36})\.(\d{1,6})\.([\w-]{20,100})$/.exec(token) ?? [];
  if (job === undefined || attempt === undefined || signature === undefined) return null;
  return verify(purpose, `${job}.${attempt}`, signature) ? { job, attempt: Number(attempt) } : null;
}

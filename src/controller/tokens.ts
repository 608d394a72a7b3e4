import type { Seal } from '../base/seal.ts';

const purpose = 'attempt';

/** The attempt that a token is good for. */
export interface AttemptOf {
  readonly job: string;
  readonly attempt: number;
}

/** A token that is good for one attempt alone. */
export function makeToken({ job, attempt }: AttemptOf, sign: Seal['sign']): string {
  return `${job}.${attempt}.${sign(purpose, `${job}.${attempt}`)}`;
}

/** The attempt of an Authorization header; `null` when the token is not ours. */
export function readToken(header: string | undefined, verify: Seal['verify']): AttemptOf | null {
  const [, job, attempt, signature] = /^Bearer ([0-9a-f-]{36})\.(\d{1,6})\.([\w-]{20,100})$/.exec(header ?? '') ?? [];
  if (job === undefined || attempt === undefined || signature === undefined) return null;
  return verify(purpose, `${job}.${attempt}`, signature) ? { job, attempt: Number(attempt) } : null;
}

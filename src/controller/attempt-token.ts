import type { Seal } from '../base/seal.ts';
import type { AttemptId } from '../runners/runner.ts';

const purpose = 'attempt';

export function makeToken({ jobId, attempt }: AttemptId, sign: Seal['sign']): string {
  return `${jobId}.${attempt}.${sign(purpose, `${jobId}.${attempt}`)}`;
}

/** Returns `null` when the signature is not ours. */
export function readToken(token: string, verify: Seal['verify']): AttemptId | null {
  const [, jobId, attempt, signature] = /^([0-9a-f-]{36})\.(\d{1,6})\.([\w-]{20,100})$/.exec(token) ?? [];
  if (jobId === undefined || attempt === undefined || signature === undefined) return null;
  return verify(purpose, `${jobId}.${attempt}`, signature) ? { jobId, attempt: Number(attempt) } : null;
}

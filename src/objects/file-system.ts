import { codeOf, Refusal, refuseWithout } from '../base/errors.ts';

export const storageFull = 'The storage of finished files is full';

const sentences: Readonly<Record<string, string>> = {
  ENOSPC: storageFull,
  EDQUOT: storageFull,
  EROFS: 'The storage of finished files can only be read',
};

/** Awaits a call of the file system; its errors become the refusal `unavailable`, other errors pass unchanged. */
export async function callDisk<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (cause) {
    if (cause instanceof Refusal || !(cause instanceof Error && 'syscall' in cause)) throw cause;
    const sentence = sentences[codeOf(cause)] ?? 'The storage of finished files cannot be reached';
    throw refuseWithout('object store', cause, sentence);
  }
}

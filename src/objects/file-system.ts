import { open } from 'node:fs/promises';
import { Refusal, refuse } from '../base/errors.ts';

const sentences: Readonly<Record<string, string>> = {
  ENOSPC: 'The storage of finished files is full',
  EDQUOT: 'The storage of finished files is full',
  EROFS: 'The storage of finished files can only be read',
};

/** Waits for the storage; an error of the system becomes the refusal `unavailable`, any other stays what it is. */
export async function reach<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (cause) {
    if (cause instanceof Refusal || !(cause instanceof Error && 'syscall' in cause)) throw cause;
    const sentence = sentences[codeOf(cause)] ?? 'The storage of finished files cannot be reached';
    throw Object.assign(refuse('unavailable', sentence), { cause });
  }
}

/** Gives the system's word for an error, such as ENOENT; empty when it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Makes sure that what was created, renamed or removed in a folder outlives a power cut. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

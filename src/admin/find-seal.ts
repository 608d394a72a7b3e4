import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
import { makeSeal, type Seal } from '../base/seal.ts';
import { secretKey } from '../base/settings/kinds.ts';

/** Returns the seal of TRAWL_SECRET, else of the secret that `trawl up` made in the data folder; throws `unavailable` without either. */
export async function findSeal(config: Pick<Config, 'secret' | 'secretOld' | 'data'>): Promise<Seal> {
  return makeSeal({ secret: config.secret ?? (await readSecret(join(config.data, 'secret'))), old: config.secretOld });
}

async function readSecret(path: string): Promise<Uint8Array> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw refuse('unavailable', `No secret found: TRAWL_SECRET is not set, and ${path} cannot be read`);
  });
  const secret = secretKey.read(text.trim());
  if (!secret) throw refuse('unavailable', `The secret in ${path} must be ${secretKey.allowed}`);
  return secret;
}

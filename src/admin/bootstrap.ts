import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { UsageError } from '../base/command-line.ts';
import { readConfig } from '../base/config.ts';
import { codeOf, isRefusal, refuse } from '../base/errors.ts';
import type { Terminal } from '../base/terminal.ts';
import { makeAccountId, makeKey, readKey } from '../model/api-key.ts';
import { createAccount } from '../store/accounts/create-account.ts';
import { createKey } from '../store/accounts/create-key.ts';
import { findAccount } from '../store/accounts/read-accounts.ts';
import { listKeys } from '../store/accounts/read-keys.ts';
import { grantCredits, isGranted } from '../store/money/grant-credits.ts';
import type { RecordStore } from '../store/script.ts';
import { allowed, makeProgram } from './command-io.ts';
import { withRecord } from './command-record.ts';
import { slug, wholeNumber } from './command-values.ts';

const usage = 'trawl bootstrap --new-key | --account SLUG --key-file FILE [--credits N]';
export const bootstrapHelp = `Usage: ${usage}

Creates a first account with a key that is known before the installation, so that it can stand in a Secret. An account that is there stays as it
is, whatever was done with it since. The chart runs it after each install and upgrade when its value bootstrap.existingSecret names one.

  --new-key        Print a new key and change nothing; it needs no record.
  --account SLUG   Slug of the account.
  --key-file FILE  File with the key, which is shown nowhere.
  --credits N      Credits of the account; 100 unless given.
  --help           Show this text.
`;

const options = {
  'new-key': { type: 'boolean' },
  account: { type: 'string' },
  'key-file': { type: 'string' },
  credits: { type: 'string' },
} as const;
const alias = 'first';

export const runCommand = makeProgram({ usage, help: bootstrapHelp, options }, async (given, terminal) => {
  if (given['new-key']) terminal.out(`${makeKey(makeAccountId(randomBytes(16)), randomBytes(32))}\n`);
  else terminal.out(await makeFirst(given, terminal));
  return 0;
});

type BootstrapOptions = Readonly<Partial<Record<'account' | 'key-file' | 'credits', string>>>;

async function makeFirst(given: BootstrapOptions, terminal: Terminal): Promise<string> {
  if (given.account === undefined) throw new UsageError('--account is missing');
  const name = allowed(slug.read(given.account));
  const credits = allowed(wholeNumber(1)(given.credits ?? '100', 'The number of credits'));
  const key = readKeyFile(given['key-file']);
  const make = (store: RecordStore) => makeAccount(store, name, credits, key);
  return (await withRecord(readConfig(terminal.env), terminal, make))
    ? `The account ${name} is there, with ${credits} credits and the key of the file.\n`
    : `The account ${name} was there before, or was removed: nothing has changed.\n`;
}

/**
 * Returns false when the account was made before. The credits go last, so one without them was interrupted, and is finished; a key that
 * was deleted since does not come back.
 */
async function makeAccount(
  store: RecordStore,
  name: string,
  credits: number,
  { accountId, keyId: id, hash }: NonNullable<ReturnType<typeof readKey>>,
): Promise<boolean> {
  try {
    await createAccount(store, accountId, name, { name });
  } catch (error) {
    if (!isRefusal(error, 'already_exists')) throw error;
    const present = await findAccount(store, name).catch(() => null);
    if (present === null) return false;
    if (present !== accountId)
      throw refuse('already_exists', `The account ${name} is another one than that of the key`);
    if (await isGranted(store, accountId, alias)) return false;
  }
  const made = await listKeys(store, accountId);
  if (!made.some((key) => key.id === id)) await createKey(store, accountId, { id, alias, hash });
  await grantCredits(store, accountId, credits, { id: alias });
  return true;
}

function readKeyFile(path: string | undefined) {
  const key = path === undefined ? null : readKey(readFileText(path).trim());
  if (key === null) throw new UsageError('--key-file must name a file with a key, as --new-key prints it');
  return key;
}

function readFileText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`--key-file names a file that cannot be read (${codeOf(error)})`);
  }
}

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { UsageError } from '../base/command-line.ts';
import { readSettings } from '../base/config.ts';
import { codeOf, messageOf } from '../base/errors.ts';
import { makeFolder } from '../base/make-folder.ts';
import { writePrivateFile } from '../base/private-file.ts';
import type { Terminal } from '../base/terminal.ts';

export interface Credentials {
  readonly url: string;
  readonly key: string;
}

type ClientEnv = Terminal['env'];

const settingNames = ['TRAWL_API_URL', 'TRAWL_API_KEY'] as const;

/** Returns the credentials of the settings and of `trawl login`; a kept key is sent to no other address than its own. */
export function findCredentials(env: ClientEnv): Credentials {
  const { apiUrl, apiKey } = readSettings(env, settingNames);
  if (apiUrl !== null && apiKey !== null) return { url: apiUrl, key: apiKey };
  const kept = readKept(env);
  const url = apiUrl ?? kept?.url;
  if (url === undefined)
    throw new UsageError("No service is known: run 'trawl login URL', or set TRAWL_API_URL and TRAWL_API_KEY");
  const key = apiKey ?? (kept?.url === url ? kept.key : undefined);
  if (key === undefined)
    throw new UsageError(`No key is known for ${url}: run 'trawl login ${url}', or set TRAWL_API_KEY`);
  return { url, key };
}

/** Names where the key of `findCredentials` comes from. */
export function keyOrigin({ TRAWL_API_KEY, TRAWL_API_KEY_FILE }: ClientEnv): string {
  return TRAWL_API_KEY ? 'TRAWL_API_KEY' : TRAWL_API_KEY_FILE ? 'TRAWL_API_KEY_FILE' : "'trawl login'";
}

/** Keeps credentials for later commands in a file that only its owner can read, and returns its path. */
export async function keepCredentials({ url, key }: Credentials, env: ClientEnv): Promise<string> {
  const path = credentialsPath(env);
  try {
    await makeFolder(dirname(path), 0o700);
    await writePrivateFile(path, `${JSON.stringify({ url, key })}\n`);
  } catch (error) {
    throw new Error(`${path} cannot be written: ${messageOf(error)}`);
  }
  return path;
}

function readKept(env: ClientEnv): Credentials | null {
  const path = credentialsPath(env);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw new UsageError(`${path} cannot be read: ${messageOf(error)}`);
  }
  try {
    const { url, key } = JSON.parse(text) as Record<string, string>;
    const { apiUrl, apiKey } = readSettings({ TRAWL_API_URL: url, TRAWL_API_KEY: key }, settingNames, () => '');
    if (apiUrl !== null && apiKey !== null) return { url: apiUrl, key: apiKey };
  } catch {
    // It is no JSON, no object, or holds what no setting may be.
  }
  throw new UsageError(`${path} cannot be understood: run 'trawl login' again`);
}

function credentialsPath(env: ClientEnv): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'trawl', 'credentials.json');
}

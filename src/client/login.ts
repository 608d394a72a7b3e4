import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { parseWords, UsageError } from '../base/command-line.ts';
import { isLoopback, readSettings } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { printable, type Terminal } from '../base/terminal.ts';
import { exitCodes, reportUsage } from './client-command.ts';
import { keepCredentials } from './credentials.ts';
import { makePatience, ServiceAway } from './patience.ts';
import { CallRefused, makeServiceClient } from './service-client.ts';

const usage = 'trawl login URL [KEY]';

export const loginHelp = `Usage: ${usage}

Keeps the address of a service and an API key for trawl get, in a file that only its owner can read (mode 0600). Without
KEY the key is read from standard input, so that it stands in no list of processes. The service is asked for the account of
the key first, which is free; nothing is kept when it refuses the key (exit code 3). TRAWL_API_URL and TRAWL_API_KEY win
over what is kept, and a kept key is sent to no other address than its own.

  --help  Show this text.
`;

/** Checks and keeps the credentials of a caller. */
export async function runCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const { values, positionals } = parseWords(args, { help: { type: 'boolean', short: 'h' } });
    if (values.help) {
      terminal.out(loginHelp);
      return exitCodes.done;
    }
    const [address, given, ...more] = positionals;
    if (address === undefined || more.length > 0)
      throw new UsageError(address === undefined ? 'URL is missing' : 'There is a word too many');
    const { apiUrl: url } = readAsSetting({ TRAWL_API_URL: address }, 'URL');
    const { apiKey: key } = readAsSetting({ TRAWL_API_KEY: (given ?? (await readKey(terminal))).trim() }, 'KEY');
    if (url === null || key === null) throw new UsageError('KEY is missing');
    const client = makeServiceClient({ url, key }, makePatience(url));
    const usageOfKey = await client.call('/v1/usage?fields=account.name,remaining', {
      signal: new AbortController().signal,
    });
    const path = await keepCredentials({ url, key }, terminal.env);
    if (url.startsWith('http:') && !isLoopback(new URL(url).hostname))
      terminal.err(`The key travels to ${url} unencrypted: use https outside of your own machine\n`);
    terminal.out(`${path} keeps the key of ${describe(usageOfKey)} at ${url}\n`);
    return exitCodes.done;
  } catch (error) {
    return reportLogin(error, terminal);
  }
}

/** Reads a word of the command line as the setting of the same meaning; the sentence of an error never shows the word. */
function readAsSetting(words: Readonly<Record<string, string>>, name: string) {
  try {
    return readSettings(words, ['TRAWL_API_URL', 'TRAWL_API_KEY'], () => '');
  } catch (error) {
    throw new UsageError(messageOf(error).replace(/^[A-Z_]+/, name));
  }
}

/** Reads the first line of standard input; on a terminal without showing what is typed. */
async function readKey({ isWatched, err }: Terminal): Promise<string> {
  const isTyped = isWatched && process.stdin.isTTY;
  if (isTyped) err('API key (not shown): ');
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: unseen, terminal: isTyped });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
    if (isTyped) err('\n');
  }
}

function describe(value: unknown): string {
  const name = (value as { account?: { name?: unknown } }).account?.name;
  return typeof name === 'string' ? `the account ${printable(name)}` : 'an account';
}

function reportLogin(error: unknown, terminal: Terminal): number {
  if (!(error instanceof CallRefused || error instanceof ServiceAway)) return reportUsage(error, usage, terminal);
  terminal.err(`${error.message}\n`);
  return exitCodes.noService;
}

import { UsageError } from '../base/command-line.ts';
import { isRefusalCode, Refusal, refuse } from '../base/errors.ts';
import { printable, type Terminal } from '../base/terminal.ts';
import { makeProgram, reportError, showProgress } from './command-io.ts';
import { accessChecks } from './conform-access.ts';
import { accountChecks } from './conform-account.ts';
import type { Check, Verdict } from './conform-check.ts';
import { type ConformClient, type ConformOptions, makeConformClient, pick } from './conform-client.ts';
import { jobChecks } from './conform-jobs.ts';
import { mediaChecks } from './conform-media.ts';
import { requestChecks } from './conform-request.ts';

const checks: readonly Check[] = [accessChecks, requestChecks, accountChecks, jobChecks, mediaChecks].flat();

type ConformRow = Pick<Check, 'id' | 'sentence'> & Verdict;

const text = { type: 'string' } as const;
const options = { 'base-url': text, key: text, 'media-url': text, json: { type: 'boolean' } } as const;
const usage = 'trawl conform --base-url URL --key KEY [--media-url URL] [--json]';
const help = `Usage: ${usage}

Judges a deployment from outside, row by row of the contract, with the key of one account. Nothing else should use that
account meanwhile: its balances are compared. At most 5 credits are spent, and none without --media-url. About ten jobs are
started; each holds a credit for a while and counts towards the quotas of the key. What was started is cancelled in the
end, and the files that were made are removed. The exit code is 1 when a row fails.

  --base-url URL   The deployment, such as https://media.example.com. Required.
  --key KEY        An API key of the account. It is never shown. Required.
  --media-url URL  A short film that the deployment can download: for the rows that need one.
  --json           Answer with one JSON value.
  --help           Show this text.
`;

export const runCommand = makeProgram({ usage, help, options }, async ({ json = false, ...words }, terminal) => {
  const given = readGiven(words);
  const shown = hiding(given.key, terminal);
  const broken = new AbortController();
  const breakOff = () => broken.abort(refuse('unavailable', 'It was broken off'));
  const signals = ['SIGINT', 'SIGTERM'] as const;
  for (const signal of signals) process.once(signal, breakOff);
  try {
    const ask = makeConformClient(given, broken.signal);
    await greet(ask, given, json, shown);
    const rows = await judgeAll(ask, broken.signal, json, shown);
    const total = totalOf(rows);
    const ok = total.fails === 0;
    if (json) shown.out(`${JSON.stringify({ base_url: given.url, ok, total, rows })}\n`);
    else shown.out(`\n${total.ok} ok, ${total.fails} fails, ${total.not_judged} not judged\n`);
    return ok ? 0 : 1;
  } catch (error) {
    return reportError(error, json, shown);
  } finally {
    for (const signal of signals) process.off(signal, breakOff);
  }
});

type GivenWords = Readonly<Partial<Record<'base-url' | 'key' | 'media-url', string>>>;

function readGiven({ 'base-url': base, key, 'media-url': media }: GivenWords): ConformOptions {
  if (base === undefined || !key) throw new UsageError(`--${key ? 'base-url' : 'key'} is missing`);
  // A header cannot carry anything else, and the answer would be a riddle.
  if (!/^[!-~]+$/.test(key)) throw new UsageError('--key must be an API key');
  return {
    url: readUrl(base, '--base-url').replace(/\/+$/, ''),
    key,
    mediaUrl: media === undefined ? null : readUrl(media, '--media-url'),
  };
}

function readUrl(text: string, name: string): string {
  const url = URL.parse(text);
  const fits = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  if (!fits) throw new UsageError(`${name} must be an http or https URL without a user name or password`);
  return url.href;
}

/** Returns a terminal that replaces the key by ***, whatever a deployment answers. */
function hiding(key: string, terminal: Terminal): Terminal {
  const spellings = [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)];
  const hide = (text: string) => spellings.reduce((left, spelling) => left.replaceAll(spelling, '***'), text);
  return { ...terminal, out: (text) => terminal.out(hide(text)), err: (text) => terminal.err(hide(text)) };
}

/** Announces the account and the most credits to be spent; throws when the deployment does not answer or refuses the key. */
async function greet(
  ask: ConformClient,
  { url, mediaUrl }: ConformOptions,
  json: boolean,
  terminal: Terminal,
): Promise<void> {
  const seen = await ask.get('/v1/usage').catch((error: Error) => {
    if (error instanceof Refusal) throw error;
    const { message } = error.cause instanceof Error ? error.cause : error;
    throw refuse('unavailable', `Nobody answers at ${url}: ${message}`);
  });
  const error = pick(seen.json, 'error');
  const code = seen.headers.get('x-error-code');
  if (seen.status !== 200)
    throw refuse(
      isRefusalCode(code) ? code : 'unavailable',
      `The usage of this key answers ${seen.status} ${error ?? ''}`.trim(),
    );
  const most = mediaUrl === null ? 0 : checks.reduce((sum, { credits }) => sum + (credits ?? 0), 0);
  const name = printable(String(pick(seen.json, 'account.slug')));
  const sentence = `${checks.length} rows of the contract at ${url}, account ${name}: at most ${most} credits are spent.\n\n`;
  if (json) terminal.err(sentence.trimEnd().concat('\n'));
  else terminal.out(sentence);
}

/** Runs one check after the other, then cancels the jobs that are left. */
async function judgeAll(
  ask: ConformClient,
  signal: AbortSignal,
  json: boolean,
  terminal: Terminal,
): Promise<ConformRow[]> {
  const rows: ConformRow[] = [];
  const progress = showProgress(terminal);
  const width = Math.max(...checks.map(({ id }) => id.length));
  try {
    for (const [n, { id, sentence, run }] of checks.entries()) {
      progress.show(`${n + 1}/${checks.length} ${id} ${sentence}`);
      const row = { id, sentence, ...(await run(ask)) };
      signal.throwIfAborted();
      rows.push(row);
      progress.clear();
      if (!json) terminal.out(`${id.padEnd(width)}  ${printable(wordsOf(row))}\n`);
    }
    return rows;
  } finally {
    progress.show('Cancelling what was started');
    await ask.tidy().catch((error: Error) => terminal.err(`Jobs may still be open: ${error.message}\n`));
    progress.clear();
  }
}

function wordsOf(row: ConformRow): string {
  switch (row.verdict) {
    case 'ok':
      return 'ok';
    case 'fails':
      return `fails: wanted ${row.wanted}, saw ${row.saw} (${row.sentence})`;
    case 'not judged':
      return `not judged: ${row.why}`;
  }
}

function totalOf(rows: readonly ConformRow[]) {
  const count = (verdict: ConformRow['verdict']) => rows.filter((row) => row.verdict === verdict).length;
  return { ok: count('ok'), fails: count('fails'), not_judged: count('not judged') };
}

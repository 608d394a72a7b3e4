import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { UsageError } from '../base/command-line.ts';
import { inParallel } from '../base/in-parallel.ts';
import { printable, type Terminal } from '../base/terminal.ts';
import { isEnded } from '../model/job.ts';
import { exitCodes, reportUsage } from './client-command.ts';
import { findCredentials, keyOrigin } from './credentials.ts';
import { type FileRow, type GetTools, getFile, type WantedFile } from './get-file.ts';
import { getHelp, getUsage, inOptions } from './get-options.ts';
import { type GetOrder, readGetOrder, readUrlList, requestKeys } from './get-order.ts';
import { isFolder } from './partial-file.ts';
import { defaultPatience, makePatience, type PatienceLimits, ServiceAway } from './patience.ts';
import { expandPlaylist } from './playlist.ts';
import { showFiles } from './progress-display.ts';
import { writeBytes } from './progress-line.ts';
import { CallRefused, makeServiceClient } from './service-client.ts';

/** Asks for URLs, waits, fetches the files and prints their paths. */
export async function runCommand(
  args: readonly string[],
  terminal: Terminal,
  limits: PatienceLimits = defaultPatience,
): Promise<number> {
  try {
    const order = readGetOrder(args);
    if (order === 'help') {
      terminal.out(getHelp);
      return exitCodes.done;
    }
    const credentials = findCredentials(terminal.env);
    const urls = await readUrls(order);
    const patience = makePatience(credentials.url, limits);
    const interrupt = catchInterrupt();
    const commandKey = order.idempotencyKey ?? randomUUID();
    let isUnfinished = false;
    try {
      const tools: GetTools = {
        order,
        client: makeServiceClient(credentials, patience),
        patience,
        keyOf: requestKeys(commandKey, order),
        noteUnfinished: () => {
          isUnfinished = true;
        },
        interrupted: interrupt.signal,
      };
      const code = await getAll(tools, order, urls, terminal);
      await endOfOutput();
      return interrupt.signal.aborted ? exitCodes.interrupted : code;
    } finally {
      interrupt.release();
      if (isUnfinished) terminal.err(unfinished(commandKey));
    }
  } catch (error) {
    return reportUsage(error, getUsage, terminal);
  }
}

/** Returns the line that tells how nothing is charged twice. */
function unfinished(commandKey: string): string {
  return `The service may have accepted what was asked. Repeat the command with --idempotency-key ${commandKey} within 24 hours: it goes on with the same jobs, and nothing is charged twice.\n`;
}

async function readUrls({ urls, output, playlist }: GetOrder): Promise<string[]> {
  const list = urls.includes('-') ? readUrlList(await text(process.stdin)) : [];
  const all = urls.flatMap((url) => (url === '-' ? list : url));
  const isSeveral = all.length > 1 || playlist !== null;
  if (isSeveral && output !== null && !output.endsWith('/') && !(await isFolder(output))) {
    throw new UsageError(
      '--output must name a folder for several files: one that exists, or a name that ends in a slash',
    );
  }
  return all;
}

async function getAll(tools: GetTools, order: GetOrder, urls: readonly string[], terminal: Terminal): Promise<number> {
  const display = showFiles(terminal);
  const sayInterrupted = () => display.say(`${tools.interrupted.reason.message}: open jobs are being cancelled`);
  tools.interrupted.addEventListener('abort', sayInterrupted, { once: true });
  const codes: number[] = [];
  /** First row that ends the requests: the service is away or refuses the key. */
  let fatal: FileRow | null = null;
  let keyRefused = false;
  const tell = (row: FileRow, cause: unknown) => {
    const code = exitCodeOf(row, cause);
    codes.push(code);
    if (code === exitCodes.noService) fatal ??= row;
    const shown = { isJson: order.json, isInterrupted: tools.interrupted.aborted, isWatched: terminal.isWatched };
    sayRow(row, shown, display.say);
    if (cause instanceof CallRefused && cause.isKeyRefused) keyRefused = true;
  };
  /** Tells of a file or a playlist that is not asked for any more; returns false while no row is fatal. */
  const skip = ({ query, jobId }: WantedFile): boolean => {
    if (fatal === null) return false;
    if (jobId !== null) tools.noteUnfinished();
    tell({ ...fatal, query, job_id: jobId, status: null }, null);
    return true;
  };
  const take = async (wanted: WantedFile, n: number) => {
    if (!skip(wanted)) {
      const { row, cause } = await getFile(tools, wanted, (progress) => display.note(n, progress));
      tell(row, cause);
    }
    display.end(n);
  };
  const add = (wanted: WantedFile) => ({ wanted, n: display.add(wanted.query) });
  try {
    if (order.playlist === null) {
      await inParallel(
        order.parallel,
        urls.map((query) => add({ query, jobId: null })),
        ({ wanted, n }) => take(wanted, n),
      );
    } else {
      for (const query of urls) {
        if (skip({ query, jobId: null })) continue;
        const failure = await expandPlaylist(tools, query, order.playlist, order.parallel, async (wanted) => {
          const added = add(wanted);
          await take(added.wanted, added.n);
        });
        if (failure !== null) tell(failure.row, failure.cause);
      }
    }
  } finally {
    display.close();
    if (keyRefused) terminal.err(`The service refuses the key, which is that of ${keyOrigin(terminal.env)}\n`);
  }
  return Math.max(exitCodes.done, ...codes);
}

/** Waits until what was written to standard output is there or has failed. */
function endOfOutput(): Promise<void> {
  return new Promise((resolve) => process.stdout.write('', () => setImmediate(resolve)));
}

/** Writes the end of a file: its path or its row for scripts, and a sentence for people. */
function sayRow(
  row: FileRow,
  { isJson, isInterrupted, isWatched }: Readonly<Record<'isJson' | 'isInterrupted' | 'isWatched', boolean>>,
  say: (line: string, to?: 'out' | 'err') => void,
): void {
  if (isJson) say(JSON.stringify(row), 'out');
  else if (row.path !== null) say(row.path, 'out');
  if (row.bytes !== null && isWatched) say(`${writeBytes(row.bytes)}, with the right SHA-256`);
  const sentence = isInterrupted ? describeCancel(row) : row.error && inOptions(row.error);
  if (sentence) say(`${printable(row.query)}: ${sentence}`);
}

/** Returns what Ctrl-C has done to a job; `null` for a file that is there, and for a request without a job. */
function describeCancel({ job_id: jobId, status, path }: FileRow): string | null {
  if (jobId === null || path !== null) return null;
  if (status === 'CompletedJob') return 'completed and charged before it could be cancelled';
  const isOver = status !== null && isEnded(status);
  return isOver
    ? 'cancelled, nothing is charged'
    : `the service has not confirmed that job ${printable(jobId)} is cancelled`;
}

function exitCodeOf({ path }: FileRow, cause: unknown): number {
  if (path !== null) return exitCodes.done;
  const hasNoService = cause instanceof ServiceAway || (cause instanceof CallRefused && cause.isKeyRefused);
  return hasNoService ? exitCodes.noService : exitCodes.failed;
}

/** Turns the first Ctrl-C, or the loss of standard output, into a signal, and ends the program at the second Ctrl-C. */
function catchInterrupt(): { readonly signal: AbortSignal; readonly release: () => void } {
  const interrupted = new AbortController();
  const interrupt = () => {
    if (interrupted.signal.aborted) process.exit(exitCodes.interrupted);
    interrupted.abort(new Error('Interrupted'));
  };
  // Each write that follows fails as well.
  const loseOutput = ({ message }: Error) => interrupted.abort(new Error(`Standard output takes no path: ${message}`));
  const loseProgress = () => {};
  const signals = ['SIGINT', 'SIGTERM'] as const;
  for (const signal of signals) process.on(signal, interrupt);
  process.stdout.on('error', loseOutput);
  process.stderr.on('error', loseProgress);
  return {
    signal: interrupted.signal,
    release: () => {
      for (const signal of signals) process.off(signal, interrupt);
      process.stdout.off('error', loseOutput);
      process.stderr.off('error', loseProgress);
    },
  };
}

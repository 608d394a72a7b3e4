import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { type ResultFile, watchQuiet } from './follow-job.ts';
import { ServiceAway, type ServicePatience } from './patience.ts';

/** A file that cannot be fetched although its job completed. */
export class FetchFailed extends Error {
  readonly code: 'checksum_mismatch' | 'not_found' | 'not_written' | 'unavailable';

  constructor(code: FetchFailed['code'], sentence: string, cause?: unknown) {
    super(sentence, { cause });
    this.code = code;
  }
}

interface FetchOptions {
  readonly file: ResultFile;
  readonly partPath: string;
  /** Asks the service for a newly signed link; `null` when the file is gone. */
  readonly relink: () => Promise<string | null>;
  readonly patience: ServicePatience;
  readonly signal: AbortSignal;
  readonly onBytes: (bytes: number) => void;
  /** No byte came in a try. */
  readonly onAway: () => void;
}

const gone = 'The service does not keep the file any more';
/** Fetches of a file whose bytes are wrong; a disk or a proxy that alters them once may not do so again. */
const maxMismatches = 2;

/** Bytes on the disk so far, and their hash. */
type Received = Awaited<ReturnType<typeof startAgain>>;

/** Fetches a result into its partial file, going on where a broken connection ended, until its checksum is right. */
export async function fetchFile(options: FetchOptions): Promise<void> {
  const { file, partPath, signal } = options;
  await using handle = await open(partPath, 'r+').catch(refuseWrite);
  for (let mismatches = 1; ; mismatches++) {
    const received = { bytes: 0, hash: createHash('sha256') };
    await fetchAll(options, handle, received);
    if (received.hash.digest('hex') === file.sha256) break;
    signal.throwIfAborted();
    if (mismatches >= maxMismatches)
      throw new FetchFailed(
        'checksum_mismatch',
        'The file that arrived does not have the checksum that the service told',
      );
    await handle.truncate(0).catch(refuseWrite);
  }
  await handle.sync().catch(refuseWrite);
}

async function fetchAll(options: FetchOptions, handle: FileHandle, received: Received): Promise<void> {
  const { file, relink, patience, signal, onAway } = options;
  const silence = patience.start();
  let { link } = file;
  let furthest = 0;
  // A server that ignores ranges brings the same bytes again and again, which leads nowhere.
  const advanced = () => {
    if (received.bytes > furthest) silence.end();
    furthest = Math.max(furthest, received.bytes);
  };
  while (received.bytes < file.bytes) {
    let cause: unknown = new Error('the connection broke off');
    const before = received.bytes;
    try {
      link ??= await relink();
      if (link === null) throw new FetchFailed('not_found', gone);
      await fetchPart(link, options, handle, received, advanced);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof FetchFailed || error instanceof ServiceAway) throw error;
      cause = error;
    }
    // The next try has a link of its own: this one may have expired.
    link = null;
    if (received.bytes === before) onAway();
    if (received.bytes < file.bytes) await silence.wait(cause, signal);
  }
}

/** Fetches what is left, as far as the connection lasts. */
async function fetchPart(
  link: string,
  { file, signal, onBytes }: FetchOptions,
  handle: FileHandle,
  received: Received,
  onArrival: () => void,
): Promise<void> {
  using quiet = watchQuiet();
  const headers = { 'accept-encoding': 'identity', ...(received.bytes > 0 && { range: `bytes=${received.bytes}-` }) };
  const response = await fetch(link, { headers, signal: AbortSignal.any([signal, quiet.signal]) });
  if (response.status !== 200 && response.status !== 206) {
    await response.body?.cancel();
    // Every link is fresh, so it has not expired: the file is gone.
    if (response.status === 404 || response.status === 410) throw new FetchFailed('not_found', gone);
    throw new Error(`the file was answered with status ${response.status}`);
  }
  if (!isOfFile(response, file.bytes)) {
    await response.body?.cancel();
    throw new Error('something else came in place of the file');
  }
  const start = startOf(response);
  if (start !== received.bytes) Object.assign(received, await startAgain(handle, start));
  for await (const chunk of response.body ?? []) {
    quiet.heard();
    if (received.bytes + chunk.length > file.bytes)
      throw new FetchFailed('checksum_mismatch', 'The file that arrives is longer than the service told');
    await writeAll(handle, chunk, received.bytes);
    received.hash.update(chunk);
    received.bytes += chunk.length;
    onArrival();
    onBytes(received.bytes);
  }
}

/** Returns false for an answer such as the page of a proxy: the checksum would tell only when all the rest was fetched. */
function isOfFile({ status, headers }: Response, size: number): boolean {
  // The length of a compressed answer is another one.
  const length = headers.has('content-encoding') ? null : headers.get('content-length');
  const isWhole = length === null || Number(length) === size;
  return !headers.get('content-type')?.startsWith('text/html') && (status === 206 || isWhole);
}

/** Returns the first byte of an answer; a server that ignores the range sends the whole. */
function startOf({ status, headers }: Response): number {
  if (status === 200) return 0;
  return Number(/^bytes (\d+)-/.exec(headers.get('content-range') ?? '')?.[1] ?? Number.NaN);
}

async function startAgain(handle: FileHandle, start: number) {
  if (start !== 0) throw new Error('the server sent another part than was asked for');
  await handle.truncate(0).catch(refuseWrite);
  return { bytes: 0, hash: createHash('sha256') };
}

async function writeAll(handle: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.length; ) {
    const { bytesWritten } = await handle.write(chunk, done, chunk.length - done, position + done).catch(refuseWrite);
    done += bytesWritten;
  }
}

export function refuseWrite(error: Error): never {
  throw new FetchFailed('not_written', `The file cannot be written: ${error.message}`, error);
}

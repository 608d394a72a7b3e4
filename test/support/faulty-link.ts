import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from './until.ts';

/** One call that came through a link. */
interface LinkedCall {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
}

/** A server between a caller and a service, with faults that a test switches on. */
export interface FaultyLink {
  readonly url: string;
  readonly calls: LinkedCall[];
  /** Address that calls are passed on to; without one, and while it does not answer, connections are closed. */
  lead(to: string | null): void;
  /** Passes on this many calls whose path fits, and closes their connections instead of answering. */
  loseAnswers(path: RegExp, times: number): void;
  /** Passes on this many calls whose path fits, and keeps their answers back. */
  holdAnswers(path: RegExp, times: number): void;
  /** Answers every fetch of a file with a redirect to another address, as a store of S3 does. */
  redirectFiles(to: string): void;
  /** Answers this many calls whose path fits with 503 and a `Retry-After`, and does not pass them on. */
  refuse(path: RegExp, times: number): void;
  /** Closes this many streams of events after their first event. */
  cutStreams(times: number): void;
  /** Closes this many answers with a file in their middle, each as soon as `mayCut` is true. */
  cutFiles(times: number, mayCut: () => boolean): void;
  /** Changes one byte of each file from now on, of so many files unless all. */
  alterFiles(times?: number): void;
  /** Takes all faults back and forgets the calls. */
  mend(): void;
  stop(): Promise<void>;
}

/** Faults of one link, and the calls that came through it. */
interface LinkState {
  readonly faults: LinkFaults;
  readonly calls: LinkedCall[];
}

/**
 * Starts a link. Links that share `linkOfJob` lead to one service: the fetch of a file counts for the link that asked for the job,
 * whichever link its address names.
 */
export async function startFaultyLink(linkOfJob = new Map<string, LinkState>()): Promise<FaultyLink> {
  let target: string | null = null;
  const own: LinkState = { faults: noFaults(), calls: [] };
  const server = createServer((asking, answer) => {
    const { faults, calls } = linkOfCall(asking.url ?? '', own, linkOfJob);
    calls.push({ method: asking.method ?? '', path: asking.url ?? '', headers: asking.headers });
    if (target === null) return void answer.destroy();
    if (isDue(faults.refused, asking.url ?? '')) {
      return void answer.writeHead(503, { 'retry-after': '1', 'x-error-code': 'unavailable' }).end('{"error":"Busy"}');
    }
    if (faults.elsewhere !== null && asking.url?.startsWith('/files/'))
      return void answer.writeHead(307, { location: faults.elsewhere + asking.url }).end();
    const onward = request(target + asking.url, { method: asking.method, headers: asking.headers, agent: false });
    onward.on('response', (came) => passBack(asking, answer, came, faults)).on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    asking.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { faults, calls } = own;
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    lead: (to) => {
      target = to;
    },
    loseAnswers: (path, times) => {
      faults.lost = { path, times };
    },
    holdAnswers: (path, times) => {
      faults.held = { path, times };
    },
    redirectFiles: (to) => {
      faults.elsewhere = to;
    },
    refuse: (path, times) => {
      faults.refused = { path, times };
    },
    cutStreams: (times) => {
      faults.streamCuts = times;
    },
    cutFiles: (times, mayCut) => {
      Object.assign(faults, { cuts: times, mayCut });
    },
    alterFiles: (times = Number.POSITIVE_INFINITY) => {
      faults.alterings = times;
    },
    mend: () => {
      Object.assign(faults, noFaults());
      calls.length = 0;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface LinkFaults {
  lost: { path: RegExp; times: number };
  refused: { path: RegExp; times: number };
  held: { path: RegExp; times: number };
  elsewhere: string | null;
  streamCuts: number;
  cuts: number;
  mayCut: () => boolean;
  alterings: number;
}

function noFaults(): LinkFaults {
  const none = { path: /$^/, times: 0 };
  return {
    lost: none,
    refused: none,
    held: none,
    elsewhere: null,
    streamCuts: 0,
    cuts: 0,
    mayCut: () => true,
    alterings: 0,
  };
}

/** Returns the state of the link that a call belongs to. */
function linkOfCall(path: string, own: LinkState, linkOfJob: Map<string, LinkState>): LinkState {
  const [, kind, jobId = ''] = /^\/(v1\/jobs|files)\/([^/?]+)/.exec(path) ?? [];
  if (kind === 'v1/jobs') linkOfJob.set(jobId, own);
  return (kind === 'files' && linkOfJob.get(jobId)) || own;
}

/** Returns true for a call that a fault is meant for, and counts it. */
function isDue(fault: { path: RegExp; times: number }, path: string): boolean {
  if (fault.times <= 0 || !fault.path.test(path)) return false;
  fault.times -= 1;
  return true;
}

/** Passes an answer back to the caller, with the faults that are on. */
function passBack(asking: IncomingMessage, answer: ServerResponse, came: IncomingMessage, faults: LinkFaults): void {
  const path = asking.url ?? '';
  if (isDue(faults.held, path)) return void came.resume();
  if (isDue(faults.lost, path)) {
    came.resume().on('end', () => answer.destroy());
    return;
  }
  const isFile = path.startsWith('/files/');
  const isCut = isFile && faults.cuts > 0;
  if (isCut) faults.cuts -= 1;
  const isAltered = isFile && faults.alterings > 0;
  if (isAltered) faults.alterings -= 1;
  const isCutStream = faults.streamCuts > 0 && came.headers['content-type']?.startsWith('text/event-stream') === true;
  if (isCutStream) faults.streamCuts -= 1;
  answer.writeHead(came.statusCode ?? 502, came.headers).flushHeaders();
  const half = Math.floor(Number(came.headers['content-length']) / 2);
  let sent = 0;
  came.on('data', (chunk: Buffer) => {
    const bytes = Buffer.from(isCut ? chunk.subarray(0, half - sent) : chunk);
    if (isAltered && sent === 0) bytes[0] = bytes[0]! ^ 1;
    sent += bytes.length;
    answer.write(bytes, () => (isCutStream ? answer.destroy() : undefined));
    if (isCutStream) came.removeAllListeners('data').resume();
    if (!isCut || sent < half) return;
    came.removeAllListeners('data').resume();
    void until(faults.mayCut, 20, 'the caller has read enough').finally(() => answer.destroy());
  });
  // A connection that is closed while the caller still sends is reset, and the caller may lose the answer.
  const end = () => {
    if (asking.readableEnded) return void answer.end();
    asking.unpipe();
    asking.once('end', () => answer.end()).resume();
  };
  came.on('end', () => (isCut ? undefined : end())).on('error', () => answer.destroy());
}

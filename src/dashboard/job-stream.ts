import { addAbortListener } from 'node:events';
import { onLeave } from '../api/on-leave.ts';
import { type ApiReply, streamHeaders } from '../api/reply.ts';
import { refuse } from '../base/errors.ts';
import { startPeriodicTask } from '../base/periodic-task.ts';
import type { DashboardCall } from './dashboard-app.ts';

type ReadJobs = (limit: number) => Promise<{ readonly jobs: readonly object[]; readonly next_cursor: string | null }>;

/** One reader of an account's newest jobs, shared by all pages that show them. */
interface AccountStream {
  readonly listeners: Set<(text: string) => void>;
  text: string;
  stop(): void;
}

const everyMs = 2_000;
const limit = 20;
/** The browser then asks again. */
const maxStreamMs = 60_000;
const maxStreams = 2_000;
const maxStreamsOfAccount = 50;
/** Bytes that a page has not read. */
const maxUnread = 1024 * 1024;

const streams = new Map<string, AccountStream>();
let open = 0;

/** Sends the newest jobs of the account as server-sent events, at each change, for a minute or until the page goes or its session ends. */
export async function streamJobs(
  { draining }: { readonly draining: AbortSignal },
  { res, accountId, sessionLasts }: DashboardCall,
  readJobs: ReadJobs,
): Promise<ApiReply | null> {
  if (accountId === '') throw refuse('not_found', 'Choose an account first');
  // A page that has gone while its session was read tells nothing more of it.
  if (res.destroyed) return null;
  const isFull = (streams.get(accountId)?.listeners.size ?? 0) >= maxStreamsOfAccount;
  if (open >= maxStreams || isFull) throw refuse('unavailable');
  open++;
  res.writeHead(200, { 'content-type': 'text/event-stream', ...streamHeaders });
  res.write('retry: 1000\n\n');
  const left = Promise.withResolvers<void>();
  const forget = onLeave(res, left.resolve);
  const end = () => void res.end();
  const send = async (json: string) => {
    // Judged for each message: who was removed meanwhile reads no more of the account.
    if (!(await sessionLasts())) end();
    else if (res.writableLength > maxUnread) res.destroy();
    else if (!res.writableEnded) res.write(`event: jobs\ndata: ${json}\n\n`);
  };
  let sent = Promise.resolve();
  const leave = listen(accountId, readJobs, (json) => {
    sent = sent.then(() => send(json)).catch(end);
  });
  using _timer = setTimeout(end, maxStreamMs);
  using _draining = addAbortListener(draining, end);
  await left.promise;
  forget();
  leave();
  open--;
  return null;
}

function listen(accountId: string, readJobs: ReadJobs, listener: (text: string) => void): () => void {
  const stream = streams.get(accountId) ?? begin(accountId, readJobs);
  stream.listeners.add(listener);
  if (stream.text !== '') listener(stream.text);
  return () => {
    stream.listeners.delete(listener);
    if (stream.listeners.size > 0) return;
    stream.stop();
    if (streams.get(accountId) === stream) streams.delete(accountId);
  };
}

function begin(accountId: string, readJobs: ReadJobs): AccountStream {
  const read = async () => {
    try {
      const text = JSON.stringify(await readJobs(limit));
      if (text === stream.text) return;
      stream.text = text;
      for (const listener of stream.listeners) listener(text);
    } catch {
      // The record is away: the next reading tells what has changed.
    }
  };
  const reading = startPeriodicTask(read, everyMs);
  const stream: AccountStream = { listeners: new Set(), text: '', stop: () => void reading.close() };
  streams.set(accountId, stream);
  void reading.wake();
  return stream;
}

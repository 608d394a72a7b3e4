import type { ApiReply } from '../api/reply.ts';
import { refuse } from '../base/errors.ts';
import type { DashboardCall } from './dashboard-app.ts';

type ReadJobs = (limit: number) => Promise<readonly Record<string, unknown>[]>;

/** One reader of an account's newest jobs, shared by all pages that show them. */
interface AccountStream {
  readonly listeners: Set<(text: string) => void>;
  text: string;
  stop(): void;
}

const everyMs = 2_000;
const limit = 20;
/** A proxy in front closes a connection on which nothing is sent. */
const pingMs = 20_000;
const maxStreams = 2_000;

const streams = new Map<string, AccountStream>();
let open = 0;

/** Sends the newest jobs of the account as server-sent events, at each change, until the page goes. */
export async function streamJobs(
  { draining }: { readonly draining: AbortSignal },
  { res, accountId }: DashboardCall,
  readJobs: ReadJobs,
): Promise<ApiReply | null> {
  if (accountId === '') throw refuse('not_found', 'Choose an account first');
  if (open >= maxStreams) throw refuse('unavailable');
  open++;
  res.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
  const send = (text: string) => void res.write(text);
  const ping = setInterval(() => send(': still here\n\n'), pingMs);
  const leave = listen(accountId, readJobs, (json) => send(`event: jobs\ndata: ${json}\n\n`));
  const end = () => res.end();
  draining.addEventListener('abort', end);
  await new Promise<void>((resolve) => res.once('close', resolve));
  draining.removeEventListener('abort', end);
  clearInterval(ping);
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
    streams.delete(accountId);
  };
}

function begin(accountId: string, readJobs: ReadJobs): AccountStream {
  let isReading = false;
  const read = async () => {
    if (isReading) return;
    isReading = true;
    try {
      const text = JSON.stringify({ jobs: await readJobs(limit) });
      if (text === stream.text) return;
      stream.text = text;
      for (const listener of stream.listeners) listener(text);
    } catch {
      // The record is away: the next reading tells what has changed.
    } finally {
      isReading = false;
    }
  };
  const timer = setInterval(() => void read(), everyMs);
  timer.unref();
  const stream: AccountStream = { listeners: new Set(), text: '', stop: () => clearInterval(timer) };
  streams.set(accountId, stream);
  void read();
  return stream;
}

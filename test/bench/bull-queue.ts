import { type Job, Queue, Worker } from 'bullmq';
import { createClient } from 'redis';

/** The yardstick: BullMQ with its default settings, over a connection of its own. */
export interface BullQueue {
  readonly add: () => Promise<unknown>;
  /** Adds many jobs, which wait until they are processed. */
  readonly fill: (jobs: number) => Promise<unknown>;
  /** Processes so many jobs that wait; none of them does anything. */
  readonly process: (jobs: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

const name = 'bench';
const payload = { query: 'https://example.com/film', is_async: true };

/** Opens a queue in a Redis, with one worker that has so many jobs under way at a time. */
export async function openBullQueue(url: string, concurrency: number): Promise<BullQueue> {
  // Its notices of maintenance cannot read the URL of a socket with a password.
  const client = createClient({ url, maintNotifications: 'disabled' });
  const queue = new Queue(name, { connection: client });
  const worker = new Worker(name, async () => {}, { connection: client, concurrency });
  // Without a listener an error would end the process; one that matters also fails the call that is measured.
  const ignore = (): void => {};
  client.on('error', ignore);
  queue.on('error', ignore);
  worker.on('error', ignore);
  await queue.waitUntilReady();
  await worker.waitUntilReady();
  await worker.pause();
  return {
    add: () => queue.add('video', payload),
    fill: async (jobs) => {
      await worker.pause();
      await queue.addBulk(Array.from({ length: jobs }, () => ({ name: 'video', data: payload })));
    },
    process: async (jobs) => {
      const ended = countEnds(worker, jobs);
      await worker.resume();
      await ended;
    },
    close: async () => {
      await worker.close();
      await queue.close();
      client.destroy();
    },
  };
}

/** Waits until so many jobs have ended well. */
function countEnds(worker: Worker, jobs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let ended = 0;
  const note = (): void => {
    ended += 1;
    if (ended === jobs) resolve();
  };
  const fail = (_: Job | undefined, error: Error): void => reject(error);
  worker.on('completed', note).on('failed', fail);
  return promise.finally(() => worker.off('completed', note).off('failed', fail));
}

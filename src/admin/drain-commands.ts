import { setTimeout as wait } from 'node:timers/promises';
import { writeTime } from '../model/timestamp.ts';
import { beginDrain, countOpen, endDrain, type OpenWork, readOpenWork } from '../store/access/drain.ts';
import type { RecordStore } from '../store/script.ts';
import { type CommandResult, command } from './command.ts';
import { wholeNumber } from './command-values.ts';
import { fieldText } from './text-table.ts';

const json = '{draining, since, queued, running, recording, delayed, calls, webhooks_due, done}';
const lookEveryMs = 500;

export const drainCommands = {
  'drain on': command({
    text: 'Begins a drain: new jobs and calls get 503 until `drain off`, and what is open finishes.',
    json,
    run: async (_, { store }) => {
      await beginDrain(store);
      return shownDrain(await readOpenWork(store));
    },
  }),
  'drain off': command({
    text: 'Ends a drain: new jobs and calls are admitted again.',
    json,
    run: async (_, { store }) => {
      await endDrain(store);
      return shownDrain(await readOpenWork(store));
    },
  }),
  'drain status': command({
    text: 'Says what is open. With --wait, waits until nothing is, and exits with 1 when something is left.',
    json,
    options: {
      wait: { value: 'SECONDS', read: wholeNumber(0, 86_400), text: 'Longest time to wait until nothing is open.' },
    },
    run: async (given, { store, progress }) => {
      if (given.wait === undefined) return shownDrain(await readOpenWork(store));
      const left = await waitForEnd(store, given.wait * 1000, (work) =>
        progress(`Open jobs and calls: ${countOpen(work)}, webhooks that are due: ${work.webhooksDue} …`),
      );
      return { ...shownDrain(left), failed: !isDone(left) };
    },
  }),
};

/** Waits until nothing is open and no webhook is due, for at most so long; returns what is left. */
export async function waitForEnd(
  store: RecordStore,
  maxMs: number,
  tell: (left: OpenWork) => void = () => {},
): Promise<OpenWork> {
  const until = performance.now() + maxMs;
  for (;;) {
    const left = await readOpenWork(store);
    if (isDone(left) || performance.now() >= until) return left;
    tell(left);
    await wait(Math.min(lookEveryMs, Math.max(0, until - performance.now())));
  }
}

function isDone(work: OpenWork): boolean {
  return countOpen(work) + work.webhooksDue === 0;
}

function shownDrain(work: OpenWork): CommandResult {
  const { since, queued, running, recording, delayed, calls, webhooksDue } = work;
  const draining = since !== null;
  const value = {
    draining,
    since: writeTime(since),
    ...{ queued, running, recording, delayed, calls, webhooks_due: webhooksDue },
    done: draining && isDone(work),
  };
  return { value, text: fieldText(value) };
}

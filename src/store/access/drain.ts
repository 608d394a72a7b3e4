import { readActiveJobs, readOpenings } from '../jobs/open-work.ts';
import { keys } from '../keys.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';

/**
 * Begins a drain, or keeps the one that lasts: from then on every script with `creditRules` refuses with `draining`. With `endsMs` a drain
 * that is new, or has an end, ends after that time; without, it lasts. Answers {'on'} or {'known'}.
 */
const beginDrainScript = notedScript('begin-drain', 'always', ['drain'], ['endsMs'])`
local left = redis.call('PTTL', drain)
if left == -2 then
  note_change()
  redis.call('SET', drain, string.format('%d', now))
end
if endsMs == '' then redis.call('PERSIST', drain)
elseif left ~= -1 then redis.call('PEXPIRE', drain, endsMs) end
return { left == -2 and 'on' or 'known' }
`;

/** Ends a drain. Answers {'off'}. */
const endDrainScript = notedScript('end-drain', 'always', ['drain'], [])`
if redis.call('EXISTS', drain) == 1 then note_change() end
redis.call('DEL', drain)
return { 'off' }
`;

/** Begins a drain, which survives every restart; with `endsMs` it ends after that time. Returns false when one lasts already. */
export async function beginDrain(store: RecordStore, endsMs: number | null = null): Promise<boolean> {
  const [word] = await runNoted(store, beginDrainScript, { endsMs }, { action: 'drain.on', target: '' });
  return word === 'on';
}

export async function endDrain(store: RecordStore): Promise<void> {
  await runNoted(store, endDrainScript, {}, { action: 'drain.off', target: '' });
}

/** Returns when the drain began, in milliseconds; `null` without one. */
export async function readDrain({ connection }: Pick<RecordStore, 'connection'>): Promise<number | null> {
  const since = await connection.read(['GET', keys.drain]);
  return since === null ? null : Number(since);
}

export interface OpenWork {
  /** When the drain began; `null` without one. */
  readonly since: number | null;
  readonly queued: number;
  readonly running: number;
  /** Those of the running jobs that record a live source, which may last for hours. */
  readonly recording: number;
  /** Jobs that wait for their next attempt. */
  readonly delayed: number;
  /** Synchronous calls in hand. */
  readonly calls: number;
  readonly webhooksDue: number;
}

export async function readOpenWork(store: RecordStore): Promise<OpenWork> {
  const { drainSince, queued, active, delayed, calls, webhooks } = await readOpenings(store);
  const jobs = active === 0 ? [] : await readActiveJobs(store);
  const recording = jobs.filter(({ hold }) => hold === 'recording').length;
  return { since: drainSince, queued, running: active, recording, delayed, calls, webhooksDue: webhooks };
}

export function countOpen({ queued, running, delayed, calls }: OpenWork): number {
  return queued + running + delayed + calls;
}

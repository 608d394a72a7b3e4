import { randomUUID } from 'node:crypto';
import { admitBatch, type NewBatch } from '../../src/store/access/admit-batch.ts';
import type { Caller } from '../../src/store/access/authorize.ts';
import { admitJoined } from '../../src/store/access/join-calls.ts';
import { endBatch } from '../../src/store/batches/end-batch.ts';
import { readBatch } from '../../src/store/batches/read-batch.ts';
import { removeBatch } from '../../src/store/batches/remove-batch.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { busy, type Scenario, type Step } from './job-scenarios.ts';
import { aDownload, admitted, anAccount, ask, type TestStore, theJob } from './record.ts';

const webhook = { url: 'https://example.com/hook', receiver: 'a@example.com/hook', authorization: '' };

/** A batch of downloads that is not admitted yet. */
export function aBatch(count: number, more: Partial<NewBatch> = {}): NewBatch {
  const items = Array.from({ length: count }, () => ({ jobId: randomUUID(), work: aDownload }));
  return { id: randomUUID(), valid: true, isOpen: true, repeat: null, items, count, webhook: null, ...more };
}

/** Admits a batch and returns it. */
export async function anAdmittedBatch(
  store: TestStore,
  caller: Caller,
  count: number,
  more: Partial<NewBatch> = {},
): Promise<NewBatch> {
  const wanted = aBatch(count, more);
  const answer = await admitBatch(store, caller, wanted);
  if (!('admitted' in answer)) throw new Error(`the batch was not admitted: ${JSON.stringify(answer)}`);
  return wanted;
}

/** Cancels every job of a batch. */
export async function cancelJobs(store: TestStore, batchId: string): Promise<void> {
  for (const id of (await readBatch(store, batchId))?.jobIds ?? []) {
    await cancelJob(store, await theJob(store, id));
  }
}

function ending(more: Partial<NewBatch>, step: (store: TestStore, id: string) => Promise<Step>): Scenario {
  return async (store) => {
    const caller = await anAccount(store, busy);
    const { id } = await anAdmittedBatch(store, caller, 2, more);
    await cancelJobs(store, id);
    return { account: caller.accountId, step: await step(store, id) };
  };
}

/** The steps of a batch, and of joined calls. */
export const batchScenarios: Readonly<Record<string, Scenario>> = {
  'admit-batch': async (store) => {
    const caller = await anAccount(store, busy);
    const wanted = aBatch(3, { webhook, repeat: { key: 'k', request: 'r' } });
    return { account: caller.accountId, step: (s) => admitBatch(s, caller, wanted) };
  },
  'admit-joined': async (store) => {
    const caller = await anAccount(store, { ...busy, quotas: { daily: 9, weekly: 9, monthly: 9, total: 9 } });
    await admitted(store, caller);
    // Buckets of the windows have passed since.
    store.advance(3 * 3600_000);
    const ids = [randomUUID(), randomUUID()];
    const step = (s: TestStore) =>
      Promise.all(ids.map((id) => ask(s, caller, { id, work: { ...aDownload, webhook } }, admitJoined)));
    return { account: caller.accountId, step };
  },
  'end-batch with a webhook': ending({ webhook }, async (_, id) => (s) => endBatch(s, id)),
  'end-batch without a webhook': ending({}, async (_, id) => (s) => endBatch(s, id)),
  'remove-batch': ending({ webhook }, async (store, id) => {
    await endBatch(store, id);
    store.advance(10_000);
    return (s) => removeBatch(s, id, 0);
  }),
};

import { randomBytes, randomUUID } from 'node:crypto';
import { makeAccountId } from '../../src/model/api-key.ts';
import { readMetadata } from '../../src/model/metadata.ts';
import { createAccount } from '../../src/store/accounts/create-account.ts';
import { type JobEnding, settleJob } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { makeTake } from '../../src/store/jobs/take-jobs.ts';
import { keys } from '../../src/store/keys.ts';
import { grantCredits } from '../../src/store/money/grant-credits.ts';
import { aDownload, admitted, aKey, completed, holder, type TestStore } from './record.ts';

export type StoredCaller = Awaited<ReturnType<typeof aKey>>;

/** Few enough that a busy machine answers each call in its 1.5 s. */
const accountsAtOnce = 16;
const settlesAtOnce = 32;
const hour = 3_600_000;
const someText = Array.from({ length: 10_000 }, () => randomUUID().slice(0, 2 + Math.floor(Math.random() * 11))).join(
  ' ',
);

/** Makes accounts with one key and credits, through the functions that operators' commands use. */
export async function makeAccounts(store: TestStore, count: number, credits: number): Promise<StoredCaller[]> {
  const made: StoredCaller[] = [];
  while (made.length < count) {
    const some = Math.min(accountsAtOnce, count - made.length);
    made.push(...(await Promise.all(Array.from({ length: some }, () => makeOne(store, credits)))));
  }
  return made;
}

/** Lets each account ask for jobs that complete, through the functions that API and controller use. */
export async function endJobs(store: TestStore, callers: readonly StoredCaller[], jobsOfEach: number): Promise<void> {
  for (let n = 0; n < callers.length; n += accountsAtOnce) {
    await store.connection.send(['SET', keys.lead, holder, 'PX', String(hour)]);
    const owners = new Map<string, StoredCaller>();
    const ask = async (caller: StoredCaller) => {
      for (let job = 0; job < jobsOfEach; job++) owners.set(await admitted(store, caller), caller);
    };
    await Promise.all(callers.slice(n, n + accountsAtOnce).map(ask));
    await completeAll(store, owners);
  }
}

async function makeOne(store: TestStore, credits: number): Promise<StoredCaller> {
  const id = makeAccountId(randomBytes(16));
  await createAccount(store, id, `a${randomBytes(6).toString('hex')}`, { name: 'An account' });
  await grantCredits(store, id, credits);
  return aKey(store, id);
}

/** Takes jobs one after the other, as a controller does, while earlier ones are started and settled. */
async function completeAll(store: TestStore, owners: ReadonlyMap<string, StoredCaller>): Promise<void> {
  const take = makeTake(store, holder, { slots: 1_000_000, kept: 0, maxWaitMs: hour });
  const running = new Set<Promise<void>>();
  for await (const id of take()) {
    const settled = complete(store, id, owners.get(id)!).finally(() => running.delete(settled));
    running.add(settled);
    if (running.size >= settlesAtOnce) await Promise.race(running);
  }
  await Promise.all(running);
}

async function complete(store: TestStore, id: string, { accountId, keyId }: StoredCaller): Promise<void> {
  await startAttempt(store, holder, { id }, 1);
  const { endpoint, path, args } = aDownload;
  const asked = { endpoint, path, args, webhook_url: null, webhook_authorization: '', trace: null };
  const job = { id, account: accountId, key: keyId, attempt: 1, ...asked };
  const delivered = { key: `${id}/1/media.mp4`, bytes: 73_400_320, sha256: sha256(), content_type: 'video/mp4' };
  const settled = await settleJob(store, holder, job, { ...completed, metadata: usualMetadata(id), delivered });
  if (!settled.done) throw new Error(`a job did not settle: ${settled.refused}`);
}

/** Metadata as a large site has it: a description of 1,000 characters, of words that seldom come again. */
function usualMetadata(id: string): JobEnding['metadata'] {
  const from = Math.floor(Math.random() * (someText.length - 1000));
  const description = someText.slice(from, from + 1000);
  const urls = { webpage_url: `https://example.com/watch?v=${id}`, thumbnail: `https://example.com/thumbs/${id}.jpg` };
  const numbers = { duration: 613, width: 1920, height: 1080, fps: 30, view_count: 123_456, like_count: 4_567 };
  const names = { title: 'A film of something that happened', uploader: 'Somebody', uploader_id: '@somebody' };
  return readMetadata({
    id: id.slice(0, 11),
    ext: 'mp4',
    upload_date: '20260301',
    description,
    ...urls,
    ...numbers,
    ...names,
  });
}

function sha256(): string {
  return randomBytes(32).toString('hex');
}

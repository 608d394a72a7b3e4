import { expect } from 'chai';
import { makeLog } from '../../src/base/log.ts';
import { readUsage } from '../../src/store/access/read-usage.ts';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { dropFile, readFileTimes } from '../../src/store/jobs/kept-files.ts';
import { noteStoring } from '../../src/store/jobs/note-storing.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { removeFile } from '../../src/store/jobs/remove-file.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys, shortId } from '../../src/store/keys.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { freeLine } from '../support/free-line.ts';
import {
  aDownload,
  admitted,
  anAccount,
  aRunningJob,
  completed,
  dieWhileRemoving,
  failed,
  holder,
  type TestStore,
} from '../support/record.ts';

const day = 86_400_000;
const lifetimes = { job: 30 * day, line: 90 * day };
const quiet = makeLog({ level: 'error', write: () => {}, now: () => 0 });

/** The sweep removes entries past their lifetime, and no others. */
export function sweepSuite(store: () => TestStore): void {
  it('releases the holds of synchronous calls after their deadline', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    await admitted(store(), caller, { work: { holdMs: 65_000 } });
    await sweepRecord(store(), lifetimes);
    expect((await verifyLedger(store(), caller.accountId)).problems).to.deep.equal([]);
    store().advance(65_000);
    expect((await sweepRecord(store(), lifetimes)).calls).to.be.at.least(1);
    expect((await sweepRecord(store(), lifetimes)).calls).to.equal(0);
    await admitted(store(), caller);
    expect((await verifyLedger(store(), caller.accountId)).problems).to.deep.equal([]);
  });

  it('releases no hold before its deadline by the clock of Redis, however far ahead the clock of the controller is', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    await admitted(store(), caller, { work: { holdMs: 65_000 } });
    const ahead = { now: () => Date.now() + 70_000, offset: () => 0 };
    await sweepRecord({ ...store(), clock: ahead }, lifetimes);
    expect((await readSnapshot(store(), caller.accountId)).balances.held).to.equal(1);
    store().advance(65_000);
    await sweepRecord(store(), lifetimes);
    expect((await readSnapshot(store(), caller.accountId)).balances.held).to.equal(0);
  });

  it('deletes the keys of an account whose removal broke off, with everything that belongs to them', async () => {
    const caller = await anAccount(store(), { credits: 1, quotas: { daily: 5 } });
    const other = await anAccount(store());
    await settleJob(store(), holder, await aRunningJob(store(), caller), completed);
    await readUsage(store(), caller);
    await dieWhileRemoving(store(), caller);
    const left = async () => {
      const names = [keys.keyring(caller.accountId), keys.key(caller.hash), keys.quota(caller.hash)];
      names.push(keys.paidLines(caller.keyId), keys.freeLines(caller.keyId));
      const there = await Promise.all(names.map((key) => store().connection.send(['EXISTS', key])));
      return there.filter((one) => Number(one) === 1).length;
    };
    expect(await left()).to.be.above(2);
    expect((await sweepRecord(store(), lifetimes)).removals).to.equal(1);
    expect(await left()).to.equal(0);
    expect((await sweepRecord(store(), lifetimes)).removals).to.equal(0);
    expect(await listKeys(store(), other.accountId)).to.have.length(1);
    expect((await readLedger(store(), caller.accountId, 9)).map(({ kind }) => kind)).to.deep.equal(['charge', 'grant']);
  });

  it('rolls the periods of idle accounts', async () => {
    const caller = await anAccount(store(), { quota: 2 });
    store().advance(100 * day);
    expect((await sweepRecord(store(), lifetimes)).periods).to.be.at.least(1);
    const kinds = (await readLedger(store(), caller.accountId, 9)).map((entry) => entry.kind);
    expect(kinds).to.deep.equal(['grant', 'lapse', 'grant']);
    expect((await sweepRecord(store(), lifetimes)).periods).to.equal(0);
  });

  it('removes a job after its lifetime with everything that belongs to it, and never an open one', async () => {
    const caller = await anAccount(store(), { credits: 2 });
    const open = await aRunningJob(store(), caller);
    const webhook = { url: 'https://example.com/hook', receiver: 'example.com', authorization: '' };
    const ended = await aRunningJob(store(), caller, { work: { ...aDownload, webhook } });
    await settleJob(store(), holder, ended, failed);
    store().advance(29 * day);
    await sweepRecord(store(), lifetimes);
    expect(await readJob(store(), ended.id)).not.to.equal(null);
    store().advance(2 * day);
    await sweepRecord(store(), lifetimes);
    expect(await readJob(store(), ended.id), 'whose files may be there').not.to.equal(null);
    await dropFile(store(), ended.id);
    expect((await sweepRecord(store(), lifetimes)).jobs).to.be.at.least(1);
    expect(await readJob(store(), ended.id)).to.equal(null);
    expect(await readJob(store(), open.id)).not.to.equal(null);
    const left = await Promise.all(
      [keys.endedJob(ended.id), keys.webhook(ended.id)].map((key) => store().connection.send(['EXISTS', key])),
    );
    expect(left.map(Number)).to.deep.equal([0, 0]);
    const jobs = await store().connection.read(['ZRANGE', keys.jobs(caller.accountId), '0', '-1']);
    expect(jobs).to.deep.equal([shortId(open.id)]);
    for (const key of [keys.webhooks, keys.deliveries(caller.accountId), keys.ended]) {
      const members = (await store().connection.read(['ZRANGE', key, '0', '-1'])) as string[];
      expect(members.filter((member) => member.endsWith(ended.id) || member === shortId(ended.id))).to.deep.equal([]);
    }
  });

  it('marks a file for removal once, and never that of an open job', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const job = await aRunningJob(store(), caller);
    const asked = async () => (await readFileTimes(store(), [job.id]))[0];
    await noteStoring(store(), holder, job, { metadata: {}, delivered: completed.delivered });
    await removeFile(store(), job);
    expect(await asked()).to.equal(null);
    await settleJob(store(), holder, job, completed);
    expect(await asked()).to.be.above(0);
    for (let n = 0; n < 2; n++) {
      await removeFile(store(), job);
      expect(await asked()).to.equal(0);
      store().advance(5000);
    }
  });

  it('D24: keeps request-log lines for their lifetime', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    await settleJob(store(), holder, await aRunningJob(store(), caller), completed);
    store().advance(89 * day);
    await sweepRecord(store(), lifetimes);
    expect(await readLines(store(), caller.accountId, 9)).to.have.length(1);
    store().advance(2 * day);
    expect((await sweepRecord(store(), lifetimes)).lines).to.be.at.least(1);
    expect(await readLines(store(), caller.accountId, 9)).to.have.length(0);
  });

  it('removes an old free line for any order of its fields', async () => {
    const caller = await anAccount(store());
    const lines = openRequestLog(store(), 200, quiet);
    lines.add(caller, { endpoint: 'GET /v1/usage', status: 200, duration_ms: 3, ip: '', credits: 0, at: 1 });
    await lines.close();
    expect(await readLines(store(), caller.accountId, 9)).to.have.length(1);
    await sweepRecord(store(), lifetimes);
    expect(await readLines(store(), caller.accountId, 9)).to.have.length(0);
  });

  it('writes 20,000 waiting lines once each, and answers other calls meanwhile', async () => {
    const caller = await anAccount(store());
    const lines = openRequestLog(store(), 50_000, quiet);
    for (let n = 0; n < 20_000; n++) lines.add(caller, { ...freeLine, at: n });
    const written = lines.flush();
    await Promise.all([...Array(50)].map(() => readUsage(store(), caller)));
    await written;
    await lines.close();
    const key = keys.freeLines(caller.keyId);
    expect(Number(await store().connection.send(['XLEN', key]))).to.equal(20_000);
  });

  it('writes free lines to the key of each', async () => {
    const callers = [await anAccount(store()), await anAccount(store())];
    const lines = openRequestLog(store(), 200, quiet);
    for (let n = 0; n < 10; n++) lines.add(callers[n % 2]!, { ...freeLine, at: n });
    await lines.close();
    const seen = await Promise.all(callers.map(({ accountId }) => readLines(store(), accountId, 9)));
    const expected = (last: number) => [8, 6, 4, 2, 0].map((at) => at + last);
    expect(seen.map((all) => all.map(({ at }) => at))).to.deep.equal([expected(0), expected(1)]);
    expect(seen[0]![0]).to.deep.include(freeLine);
  });

  it('writes free lines in batches, newest first beside the paid ones, and keeps about as many as the cap', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const [key] = await listKeys(store(), caller.accountId);
    const lines = openRequestLog(store(), 200, quiet);
    for (let n = 0; n < 1000; n++) lines.add(caller, { ...freeLine, at: n });
    await lines.close();
    await settleJob(store(), holder, await aRunningJob(store(), caller), completed);
    const seen = await readLines(store(), caller.accountId, 5000);
    expect(seen.map((one) => one.at)).to.deep.equal(seen.map((one) => one.at).toSorted((a, b) => b - a));
    expect(seen[0]).to.deep.include({ status: 201, credits: 1, endpoint: 'GET /v1/video/download', key: key!.alias });
    expect(seen.length).to.be.within(201, 401);
    expect(await readLines(store(), caller.accountId, 5, { alias: 'nobody' })).to.deep.equal([]);
  });
}

import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { applyRevocations } from '../../src/backup/apply-revocations.ts';
import { Refusal } from '../../src/base/errors.ts';
import { dumpPayload } from '../../src/store/backup/dump-payload.ts';
import { disableTopups, skipInvoices } from '../../src/store/backup/restore-entries.ts';
import { holdRestoreLease, type RestoreLease } from '../../src/store/backup/restore-lease.ts';
import { listUnknownJobs } from '../../src/store/jobs/stray-objects.ts';
import { keys } from '../../src/store/keys.ts';
import { noteOperation } from '../../src/store/note-operation.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { dumpRecord } from '../support/backups.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { aRunningJob, type TestStore } from '../support/record.ts';
import { invite } from '../support/restore-scene.ts';
import { aBuyer } from '../support/topups.ts';

const email = 'gone@example.com';
/** A string of one byte, in the oldest format that Redis 7 writes. */
const payload = dumpPayload(Buffer.from([0, 1, 0x31]), 10);

describe('the late steps of a restore', () => {
  let store: TestStore;
  let url: string;
  let buyer: Awaited<ReturnType<typeof aBuyer>>;
  let first: RestoreLease;
  let second: RestoreLease;
  eachWithEmptyRecord((fresh, redis) => {
    store = { ...fresh, actor: { via: 'command', who: 'root', from: 'host' } };
    url = redis.url;
  });
  beforeEach(async () => {
    buyer = await aBuyer(store);
    await aRunningJob(store, buyer);
    await invite(store, buyer.accountId, email);
    first = await holdRestoreLease(store);
    // As Redis does 60 s after the restore renewed it last.
    await store.connection.send(['DEL', keys.restoreLease]);
    second = await holdRestoreLease(store);
  });
  afterEach(async () => {
    // The lease of the first one is lost.
    await first.end().catch(() => undefined);
    await second.end();
  });

  const revoke = (of: RecordStore, revocation: object) =>
    applyRevocations(of, [{ account: buyer.accountId, at: 1, ...revocation } as never]);
  /** The record without its lease, whose end moves. */
  const dump = async () => [...(await dumpRecord(url))].filter(([name]) => name !== keys.restoreLease);
  async function* oneName() {
    yield [randomUUID()];
  }
  const steps: Record<string, (lease: RestoreLease) => Promise<unknown>> = {
    'disabling an automatic top-up': ({ store: of }) => disableTopups(of, [keys.topup(buyer.accountId)]),
    'leaving out numbers of invoices': ({ store: of }) => skipInvoices(of, store.clock.now()),
    'ending a key': ({ store: of }) => revoke(of, { kind: 'key', key: buyer.keyId, ends: 1 }),
    'removing a person': ({ store: of }) => revoke(of, { kind: 'person', email }),
    'suspending an account': ({ store: of }) => revoke(of, { kind: 'account' }),
    'noting the operation': ({ store: of }) =>
      noteOperation(of, '', { action: 'record.restore', target: '', change: { taken_at: '2026-01-01' } }),
    'noting objects of unknown jobs': ({ store: of }) => listUnknownJobs(of, oneName()),
    'putting a key back': (lease) => lease.put(keys.webhook('x'), null, payload),
    'removing a key': (lease) => lease.remove([keys.account(buyer.accountId)]),
    'opening the record': (lease) => lease.open(1),
  };
  for (const [title, step] of Object.entries(steps)) {
    it(`change nothing once another restore has the record, and change it while theirs lasts: ${title}`, async () => {
      const before = await dump();
      const error = await step(first).catch((caught) => caught);
      expect(await dump()).to.deep.equal(before);
      expect(error).to.be.instanceOf(Refusal).and.include({ code: 'in_use' });
      await step(second);
      expect(await dump()).not.to.deep.equal(before);
    });
  }
});

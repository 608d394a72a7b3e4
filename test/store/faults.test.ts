import { globSync } from 'node:fs';
import { expect } from 'chai';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { scripts } from '../../src/store/script.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { holder, lead, type TestStore } from '../support/record.ts';
import { contentOf, isFault, keepRecord, withFault } from '../support/script-faults.ts';
import { scenarios } from '../support/script-scenarios.ts';

/** More writes than any script has. */
const most = 60;
/** Scripts with at most one write, or whose writes lose nothing when they are done in part. */
const others = [
  ...[
    'leadership',
    'prepare-schema',
    'move-layout',
    'note-storing',
    'record-verdict',
    'poll-job',
    'poll-joined',
    'key-lasts',
    'read-usage',
    'due-webhooks',
    'read-balances',
    'open-work',
    'old-entries',
    ...['renew-lease', 'end-lease', 'put-key', 'remove-keys', 'open-restored', 'disable-topup', 'skip-invoices'],
  ],
  ...['mark-watched', 'drop-file', 'interrupt-recording', 'move-session', 'end-session'],
  ...['count-sign-in', 'take-sign-in-back', 'read-key-usage', 'cancel-batch', 'name-passkey', 'reseal-webhook-secret'],
  ...['take-test', 'end-test'],
];

describe('a script that fails in its middle', () => {
  let store: TestStore;
  before(async () => {
    for (const file of globSync('src/store/**/*.ts')) await import(`../../${file}`);
  });
  eachWithEmptyRecord((fresh) => {
    // With an author, so that the audit log is among what is undone.
    store = { ...fresh, actor: { via: 'command', who: 'root', from: 'host' } };
  });
  beforeEach(async () => {
    await lead(store, holder);
  });

  for (const [title, prepare] of Object.entries(scenarios)) {
    it(`leaves balances that fit the ledger, and a repetition does all of it: ${title}`, async () => {
      const name = title.split(' ')[0]!;
      const { step, account } = await prepare(store);
      const putBack = await keepRecord(store);
      const now = Date.now();
      const reply = await step(withFault(store, name, 0, now));
      const wanted = await contentOf(store);
      let faults = 0;
      for (let fault = 1; fault <= most; fault++) {
        await putBack();
        const error = await step(withFault(store, name, fault, now)).catch((caught) => caught);
        if (!isFault(error)) break;
        faults++;
        if (account !== undefined && !title.includes('overdraft')) {
          expect((await verifyLedger(store, account)).problems, `fault ${fault}`).to.deep.equal([]);
        }
        expect(await step(withFault(store, name, 0, now)), `fault ${fault}`).to.deep.equal(reply);
        expect(await contentOf(store), `fault ${fault}`).to.deep.equal(wanted);
      }
      expect(faults, 'writes').to.be.within(1, most - 1);
    });
  }

  it('is any script with several writes', () => {
    const tested = new Set(Object.keys(scenarios).map((title) => title.split(' ')[0]!));
    const missing = scripts.map(({ name }) => name).filter((name) => !tested.has(name) && !others.includes(name));
    expect(missing).to.deep.equal([]);
  });
});

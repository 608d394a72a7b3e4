import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { keys } from '../../src/store/keys.ts';
import { type Operator, startOperator } from '../support/operator.ts';
import { runProcedure } from '../support/procedures.ts';
import { anAccount } from '../support/record.ts';

describe('docs/operate.md', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());

  it('finishes a new TRAWL_SECRET: webhook secrets open without the old one, and one that is lost is named', async () => {
    const [former, present] = [randomBytes(32), randomBytes(32)];
    const [old, alone] = [makeSeal({ secret: former }), makeSeal({ secret: present })];
    const { accountId } = await anAccount(operator.store);
    await anAccount(operator.store);
    await setAccount(operator.store, accountId, { webhook_secret: old.seal('webhook_secret', 'whsec_a') });
    const names = {
      TRAWL_DATA: operator.data,
      TRAWL_SECRET: present.toString('base64'),
      TRAWL_SECRET_OLD: former.toString('base64'),
      ...{ NEW_SECRET: present.toString('base64'), USE_TRAWL_SECRET_OLD: 'echo "$TRAWL_SECRET_OLD"' },
    };
    for (const _ of [1, 2]) {
      const { code, out, err } = await runProcedure('finish a new TRAWL_SECRET', names);
      expect({ code, out, err }).to.deep.equal({
        code: 0,
        out: `2 accounts were looked at.\n${names.NEW_SECRET}\n`,
        err: '',
      });
      const sealed = await operator.store.connection.read(['HGET', keys.account(accountId), 'webhook_secret']);
      expect(alone.open('webhook_secret', String(sealed))).to.equal('whsec_a');
    }
    const lost = await anAccount(operator.store);
    await setAccount(operator.store, lost.accountId, {
      webhook_secret: makeSeal({ secret: randomBytes(32) }).seal('webhook_secret', 'x'),
    });
    const { code, out } = await runProcedure('finish a new TRAWL_SECRET', names);
    expect(code).to.equal(1);
    expect(out).to.include(
      `Neither TRAWL_SECRET nor TRAWL_SECRET_OLD opens the webhook secrets of these accounts: ${lost.slug}\n`,
    );
  });
});

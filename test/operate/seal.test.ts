import { expect } from 'chai';
import { layouts } from '../../src/store/schema.ts';
import { type Operator, startOperator } from '../support/operator.ts';
import { runProcedure } from '../support/procedures.ts';

describe('docs/operate.md', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());

  it('seals the record, as often as it is asked to', async () => {
    for (const _ of [1, 2]) {
      const { code, out, err } = await runProcedure('seal the record', { TRAWL_DATA: operator.data });
      expect({ code, err }).to.deep.equal({ code: 0, err: '' });
      expect(out).to.include(`The record has layout ${layouts.own}. No release before ${layouts.release} reads it.`);
    }
    const status = await operator.json('record', 'status');
    expect(status).to.deep.include({ layout: layouts.own, own_layout: layouts.own, sealed: true, seals_at: null });
    expect(status.releases).to.have.length(1);
  });
});

import { expect } from 'chai';
import { freezeProcess } from '../support/freeze-process.ts';
import { type Operator, startOperator } from '../support/operator.ts';
import { until } from '../support/until.ts';

describe('an admin command whose Redis is busy', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
    await operator.json('plan', 'set', 'basic', '--quota', '5');
  });
  after(() => operator.stop());

  it('waits for it longer than a call of the API, says so once, and is carried out', async () => {
    const thaw = await freezeProcess(operator.pid());
    const began = performance.now();
    const listed = operator.run(['plan', 'list', '--json']);
    await until(() => performance.now() - began > 3_000, 10, 'three seconds to pass');
    thaw();
    const { code, out, err } = await listed;
    expect({ code, err }).to.deep.equal({
      code: 0,
      err: 'Redis does not answer yet, perhaps because its disk is busy: waiting for up to 30 s\n',
    });
    expect(JSON.parse(out)).to.have.length(1);
  });
});

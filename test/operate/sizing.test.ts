import { expect } from 'chai';
import { runProcedure } from '../support/procedures.ts';

describe('docs/operate.md', () => {
  it('sizes the memory of Redis as its example says', async () => {
    const figures = { ACCOUNTS: '1000', JOBS_A_DAY: '100000', JOB_DAYS: '30' };
    const { code, out } = await runProcedure('size the memory of Redis', figures);
    expect({ code, out }).to.deep.equal({ code: 0, out: 'TRAWL_REDIS_MEMORY=8256750000\n' });
  });
});

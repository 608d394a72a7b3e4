import { expect } from 'chai';
import { readConfig } from '../../src/base/config.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { openEgress } from '../../src/egress/egress.ts';
import { ask, openAddress, startSource } from '../support/egress.ts';
import { aLog } from '../support/redis.ts';

const everyMs = 20;

describe('egress', () => {
  it('D65: a recording over one connection was cut after TRAWL_JOB_SECONDS, although its attempt may last longer', async () => {
    const source = await startSource((_asked, answer) => {
      // 1.5 s at least, however slow the machine is.
      let left = 75;
      const drip = setInterval(() => {
        answer.write('x');
        left -= 1;
        if (left > 0) return;
        clearInterval(drip);
        answer.end();
      }, everyMs);
    });
    const settings = { TRAWL_JOB_SECONDS: '1', TRAWL_EGRESS_ALLOW: `${openAddress}:*` };
    const config = readConfig(settings);
    const egress = await openEgress({ config, log: aLog().log, metrics: makeMetrics(), certificate: null });
    try {
      const port = await egress.listen({ host: '127.0.0.1', port: 0 });
      const { body } = await ask({ host: '127.0.0.1', port }, source.url);
      expect(body).to.have.length(75);
    } finally {
      await egress.close(0);
      await source.close();
    }
  });
});

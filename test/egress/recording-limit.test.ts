import { expect } from 'chai';
import { proxyLimitsOf } from '../../src/egress/egress.ts';

describe('The limits that the egress role sets', () => {
  it('D65: let a connection last as long as the longest recording', () => {
    const { totalSeconds } = proxyLimitsOf({ jobSeconds: 7200, maxFileBytes: 1, webhookSeconds: 10 });
    expect(totalSeconds).to.equal(7200 + 86_400);
  });
});

import { limitOf } from '../support/fuzz/campaign.ts';
import { fuzzEgress } from '../support/fuzz/egress-target.ts';

/** The long form is in test/fuzz. */
const ms = 2000;

describe('random bytes around the proxy', function () {
  this.timeout(limitOf(ms));

  it('reach no address that is not public, and neither end the process nor make it hang', async () => {
    await fuzzEgress(ms);
  });
});

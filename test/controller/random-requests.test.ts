import { limitOf } from '../support/fuzz/campaign.ts';
import { fuzzGateway } from '../support/fuzz/gateway-target.ts';

/** The long form is in test/fuzz. */
const ms = 2000;

describe('random requests of a worker', function () {
  this.timeout(limitOf(ms));

  it('are answered below 500 and leave the record readable', async () => {
    await fuzzGateway(ms);
  });
});

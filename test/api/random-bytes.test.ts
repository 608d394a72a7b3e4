import { fuzzApi } from '../support/fuzz/api-target.ts';
import { limitOf } from '../support/fuzz/campaign.ts';

/** The long form is in test/fuzz. */
const ms = 2000;

describe('random bytes sent to an API in a process of its own', function () {
  this.timeout(limitOf(ms));

  it('are answered below 500, and neither end the process nor make it hang', async () => {
    await fuzzApi(ms);
  });
});

import { limitOf } from '../support/fuzz/campaign.ts';
import { fuzzDriver, fuzzFrames } from '../support/fuzz/driver-target.ts';
import { fuzzPython } from '../support/fuzz/python-target.ts';

/** The long form is in test/fuzz. */
const ms = 2000;

describe('random lines of a child', function () {
  this.timeout(limitOf(ms));

  it('random lines of the child that runs the driver end as a page or as the failure of its job', async () => {
    await fuzzDriver(ms);
  });

  it('are well formed, whatever a page, a playlist or a manifest says', async () => {
    await fuzzPython(ms, false);
  });

  it('random lines of a child that the inspector parent forwards are told whole, wherever they are cut', async () => {
    await fuzzFrames(ms / 4);
  });
});

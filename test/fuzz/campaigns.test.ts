import { expect } from 'chai';
import { fuzzApi } from '../support/fuzz/api-target.ts';
import { type Campaign, limitOf, longMs, report } from '../support/fuzz/campaign.ts';
import { fuzzDriver, fuzzFrames } from '../support/fuzz/driver-target.ts';
import { fuzzEgress } from '../support/fuzz/egress-target.ts';
import { fuzzGateway } from '../support/fuzz/gateway-target.ts';
import { fuzzPython } from '../support/fuzz/python-target.ts';

/** The frames need a tenth of what the others do: their grammar is small. */
const campaigns: Readonly<Record<string, () => Promise<Campaign>>> = {
  'the worker gateway, sent almost requests of a worker': () => fuzzGateway(longMs),
  'the egress proxy, between almost requests and almost answers': () => fuzzEgress(longMs),
  'the API in a process of its own, sent almost requests': () => fuzzApi(longMs),
  'the worker, told almost lines of the driver': () => fuzzDriver(0.9 * longMs),
  'the driver, sent pages, playlists, manifests and errors': () => fuzzPython(longMs, true),
  'the inspector, told frames that are cut anywhere': () => fuzzFrames(0.1 * longMs),
};

describe('fuzz', function () {
  this.timeout(limitOf(longMs));
  for (const [title, run] of Object.entries(campaigns)) {
    it(`${title}: no crash, no hang, no undocumented 5xx, stable memory`, async () => {
      const campaign = await run();
      report(title, campaign);
      expect(campaign.executions).to.be.above(0);
    });
  }
});

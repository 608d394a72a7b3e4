import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { closeServer } from '../../src/base/close-server.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { addEgressCounts } from '../../src/roles/egress-counts.ts';

describe('the counts of egress that trawl up shows', () => {
  const probe = createServer((_, answer) => answer.end(text()));
  let refused = 0;
  const text = () => `trawl_process_start_time_seconds 7
trawl_egress_connections_total{verdict="refused_address"} ${refused}
`;
  after(() => closeServer(probe, 0));

  it('go on when egress is started again within the second in which it was started before', async () => {
    await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
    const metrics = makeMetrics();
    const begin = addEgressCounts(metrics, { host: '127.0.0.1', port: (probe.address() as AddressInfo).port });
    const shown = async () => {
      for (const refresh of metrics.refreshers) await refresh();
      return (await metrics.egress_connections_total.get()).values[0]?.value;
    };
    begin();
    refused = 2;
    expect(await shown()).to.equal(2);
    begin();
    refused = 2;
    expect(await shown()).to.equal(4);
    refused = 3;
    expect([await shown(), await shown()]).to.deep.equal([5, 5]);
  });
});

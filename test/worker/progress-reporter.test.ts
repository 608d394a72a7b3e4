import { expect } from 'chai';
import { type GatewayClient, openGatewayClient } from '../../src/worker/gateway-client.ts';
import { startProgressReporter } from '../../src/worker/progress-reporter.ts';
import { startStageClock } from '../../src/worker/stage-clock.ts';
import { startGateway, token } from '../support/gateway.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const path = '/v1/attempt/progress';

describe('the progress reporter', () => {
  /** Reports progress that rises until the gateway has answered these statuses; returns what the reporter says of it. */
  const report = async (...statuses: number[]) => {
    const { folder, remove } = aFolder();
    const server = await startGateway({ folder, order: { endpoint: 'video', args: { query: '' } } });
    server.refuse(path, ...statuses);
    const gateway: GatewayClient = openGatewayClient(server.address, () => token, 1, new AbortController().signal);
    const [ends, { lines, log }] = [[] as string[], aLog()];
    // Without patience, so a single report that counts as lost ends the attempt.
    const reporter = startProgressReporter({ gateway, stages: startStageClock(), patienceSeconds: 0, log }, (reason) =>
      ends.push(reason),
    );
    const count = () => server.calls.filter((call) => call.endsWith(path)).length;
    for (let n = 0; n <= statuses.length; n++) {
      reporter.note({ progress: n, stage: 'fetch', speed_bytes: null, eta_seconds: null });
      await until(() => count() > n, 60, `report ${n}`);
    }
    await until(() => server.told.length > 0, 60, 'a report was taken');
    reporter.stop();
    await server.stop();
    remove();
    return {
      ends,
      told: server.told.map(({ progress }) => progress),
      warned: lines.map((line) => JSON.parse(line).level),
    };
  };

  it('drops reports that a controller of another version refuses, with one warning, and the attempt goes on', async () => {
    expect(await report(400, 400)).to.deep.equal({ ends: [], told: [2], warned: ['warn'] });
  });

  it('ends the attempt when its token is refused or the gateway fails for longer than its patience', async () => {
    for (const status of [401, 503])
      expect(await report(status)).to.deep.equal({ ends: ['lost'], told: [1], warned: [] });
  });
});

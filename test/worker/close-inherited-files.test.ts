import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { startGateway } from '../support/gateway.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesOf, startWorker } from '../support/worker.ts';

describe('A file that a worker inherited open', function () {
  this.timeout(120_000);

  for (const sandbox of ['required', 'off'] as const) {
    it(`is open in none of its processes (sandbox ${sandbox})`, async () => {
      const { folder, remove } = aFolder();
      const inherited = join(folder, 'lock');
      const args = { query: 'http://site.example/film', script: 'sleep 600' };
      const gateway = await startGateway({ folder, order: { endpoint: 'video', args } });
      const worker = startWorker({
        folder,
        gateway: gateway.address,
        egress: 'http://127.0.0.1:9',
        sandbox,
        inherited,
      });
      try {
        await until(() => processesOf(folder).some((line) => line.includes('sleep 600')), 20, 'its command runs');
        const ids = processesOf(folder).map((line) => line.split(' ')[0] ?? '');
        const holders = ids.filter((id) => filesOf(id).includes(inherited));
        expect(ids.length).to.be.at.least(3);
        expect(holders).to.deep.equal([]);
      } finally {
        worker.process.kill('SIGTERM');
        await worker.exit;
        await gateway.stop();
        remove();
      }
    });
  }
});

function filesOf(id: string): string[] {
  const folder = `/proc/${id}/fd`;
  return readdirSync(folder).map((name) => {
    try {
      return readlinkSync(join(folder, name));
    } catch {
      // Closed after it was listed.
      return '';
    }
  });
}

import { accessSync, constants, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { processesOf } from '../support/worker.ts';
import { film, startHostilePool } from './hostile-pool.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

/** Limits the number of processes, as that of a pod may be. */
const hierarchy = '/sys/fs/cgroup/pids';

function canLimit(): boolean {
  try {
    accessSync(hierarchy, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

// Only where this user may make a cgroup.
(canLimit() ? describe : () => undefined)('A pod in which inspections have used up all processes', function () {
  this.timeout(120_000);
  const cgroup = join(hierarchy, `trawl-test-${process.pid}`);
  let source: HostileSource;
  before(async function () {
    this.timeout(180_000);
    source = await startHostileSource();
    mkdirSync(cgroup);
  });
  after(async () => {
    await source.stop();
    rmdirSync(cgroup);
  });

  for (const processes of [1, 2]) {
    it(`fails the next inspection and keeps the inspector, where ${processes - 1} are left`, async () => {
      const pool = await startHostilePool(source, 'none');
      try {
        const usual = processesOf(pool.folder);
        const [parent = ''] = usual.filter(
          (line) => !line.includes('landlock.py') && line.includes('inspector-parent.py'),
        );
        writeFileSync(join(cgroup, 'cgroup.procs'), parent.split(' ')[0] ?? '');
        writeFileSync(join(cgroup, 'pids.max'), String(processes));
        expect(await pool.inspect(source.lay(film))).to.have.nested.property('failure.code', 'worker_failed');
        writeFileSync(join(cgroup, 'pids.max'), 'max');
        expect(await pool.inspect(source.lay(film))).to.have.property('metadata');
        expect(processesOf(pool.folder)).to.deep.equal(usual);
      } finally {
        writeFileSync(join(cgroup, 'pids.max'), 'max');
        await pool.close();
      }
    });
  }
});

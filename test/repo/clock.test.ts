import { globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

/** Files that may read the clock of their machine: log lines, checks that compare clocks, S3 and a cluster, whose own clocks count, and times of files. */
const exceptions = [
  'src/admin/check-machine.ts',
  'src/admin/command-record.ts',
  'src/admin/doctor.ts',
  'src/backup/take-backup.ts',
  'src/objects/s3-bucket.ts',
  'src/roles/kubernetes-workers.ts',
  'src/roles/run-role.ts',
  'src/store/redis/redis-time.ts',
];

describe('the clock', () => {
  it('of a machine decides nothing: only listed files read it', () => {
    const readers = globSync('src/**/*.ts').filter((path) =>
      /\bDate\.now\b|\bnew Date\(\)/.test(readFileSync(path, 'utf8')),
    );
    expect(readers.toSorted()).to.deep.equal(exceptions);
  });
});

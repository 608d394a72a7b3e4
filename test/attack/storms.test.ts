import { expect } from 'chai';
import type { ProgramPaths } from '../../src/worker/find-programs.ts';
import type { Sandbox } from '../../src/worker/sandbox-command.ts';
import { programsOfOthers } from '../support/other-user.ts';
import { until } from '../support/until.ts';
import { processesOf, programs } from '../support/worker.ts';
import { openTestWorkspace, sandboxes } from '../support/workspace.ts';
import { film, startHostilePool } from './hostile-pool.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

/**
 * Each process leaves two and ends, so that none is there for long enough to be found. The machine of the tests is spared: those that
 * get no slot end at once, and all together fork some thousand times.
 */
const storm = `
import fcntl, mmap, os, random, struct, time
forks = mmap.mmap(-1, 8)
def take():
    for n in range(8):
        slot = os.open(f'slot{random.randrange(100)}', os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return slot
        except OSError:
            os.close(slot)
    os._exit(0)
def run():
    slot = take()
    while (count := struct.unpack('q', forks)[0]) < 5000:
        struct.pack_into('q', forks, 0, count + 2)
        try:
            if os.fork() and os.fork():
                os._exit(0)
        except OSError:
            pass  # Its user has as many processes as it may: without this one, the storm could end.
        os.close(slot)
        slot = take()
    os._exit(0)
for n in range(20):
    if os.fork() == 0:
        os.setsid()
        try:
            run()
        finally:
            os._exit(0)
while struct.unpack('q', forks)[0] < 500:
    time.sleep(0.01)
`;

describe('Processes that leave others and end', () => {
  let source: HostileSource;
  const others = programsOfOthers();
  const othersBelow6 = programsOfOthers(5);
  before(async () => {
    source = await startHostileSource();
  });
  after(() => source.stop());

  const places: [sandbox: Sandbox, programsOf: () => ProgramPaths, kernel: string][] = [
    ...sandboxes.map((sandbox): (typeof places)[number] => [sandbox, () => programs, '']),
    ['landlock-user', others, ''],
    // There, those of the sandbox `none` may run on, as docs/images.md says.
    ['user', othersBelow6, ', below Landlock 6'],
    ['landlock-user', othersBelow6, ', below Landlock 6'],
  ];
  for (const [sandbox, programsOf, kernel] of places) {
    it(`of one inspection stop no other one and are ended before it is answered (sandbox ${sandbox}${kernel})`, async () => {
      const pool = await startHostilePool(source, sandbox, programsOf);
      try {
        expect(await pool.inspect(source.lay(film), 'a')).to.have.property('metadata');
        const usual = processesOf(pool.folder).length;
        const other = pool.inspect(source.lay(film), 'b');
        const hostile = pool.inspect(source.lay(`report('storms')\n${storm}`), 'hostile');
        expect(await other).to.have.property('metadata');
        expect(await hostile).to.have.property('failure');
        expect(processesOf(pool.folder)).to.have.length(usual);
        expect(source.reports).to.deep.equal(['storms']);
      } finally {
        await pool.close();
      }
      await until(() => processesOf(pool.folder).length === 0, 10, 'nothing runs any more');
    });

    it(`of a worker are ended with the command that began them (sandbox ${sandbox}${kernel})`, async () => {
      const interpreter = kernel === '' ? undefined : programsOf().python;
      const place = await openTestWorkspace(sandbox, 1, {}, interpreter);
      await place.python(storm);
      expect(processesOf(place.folder)).to.deep.equal([]);
      await place.stop();
    });
  }
});

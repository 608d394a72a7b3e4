import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemPython } from '../support/other-user.ts';
import { until } from '../support/until.ts';
import { processesOf } from '../support/worker.ts';

const worker = join(import.meta.dirname, '..', '..', 'src', 'worker');
/** Any user id that is not that of the tests. */
const other = 2_000_000_000;
/** Supervises a command that leaves processes of another user, and ends. */
const leave = `
import os, signal, sys
sys.path.insert(0, ${JSON.stringify(worker)})
import supervisor
supervisor.fork_supervised()
near, far = os.pipe()
for n in range(3):
    if os.fork() == 0:
        os.setsid()
        os.setresuid(${other}, ${other}, ${other})
        os.write(far, b'x')
        signal.pause()
for n in range(3):
    os.read(near, 1)
os._exit(7)
`;

describe('A supervisor that may become another user but may not signal its processes', () => {
  it('ends what its command left to that user, and itself, in time', async () => {
    const mark = `supervisor-test-${process.pid}`;
    const python = [systemPython, '-I', '-B', '-c', leave, mark];
    const child = spawn('setpriv', ['--bounding-set=-kill', '--inh-caps=-kill', ...python], { stdio: 'inherit' });
    try {
      await until(() => child.exitCode !== null, 5, 'the supervisor ends');
      expect(child.exitCode).to.equal(7);
      expect(processesOf(mark)).to.deep.equal([]);
    } finally {
      for (const line of processesOf(mark)) process.kill(Number(line.split(' ')[0]), 'SIGKILL');
    }
  });
});

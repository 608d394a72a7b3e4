import { expect } from 'chai';
import { layCappedPython } from '../support/capped-python.ts';
import { systemPython } from '../support/other-user.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesOf, programs } from '../support/worker.ts';
import { openTestWorkspace } from '../support/workspace.ts';

const rounds = 25;
/** Leaves a process that has left its group, and ends as soon as that runs. */
const leave = `
import os, signal
near, far = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(far, b'x')
        os.closerange(0, 3)
        signal.pause()
    os._exit(0)
os.wait()
os.read(near, 1)
os.write(1, b'bye\\n')
os._exit(0)
`;

describe('A process that has left its group behind Landlock alone', () => {
  const below6 = aFolder();
  after(below6.remove);
  const oldPython = layCappedPython(below6.folder, 5, { python: systemPython });
  for (const [python, kernel] of [
    [programs.python, ''],
    [oldPython, ', also below Landlock 6'],
  ] as const) {
    it(`does not run on when its worker ends the command at the moment at which that ends itself${kernel}`, async () => {
      const place = await openTestWorkspace('none', 1, {}, python);
      for (let round = 0; round < rounds; round++) {
        const ended = new AbortController();
        const child = place.run(python, ['-I', '-c', leave], {
          ...{ folder: place.folder, env: { HOME: place.folder }, signal: ended.signal },
          onLine: () => ended.abort(),
        });
        await child.ended;
        await until(() => processesOf(place.folder).length === 0, 10, `nothing runs after round ${round}`);
      }
      expect(place.breaches).to.deep.equal([]);
      await place.stop();
    });
  }
});

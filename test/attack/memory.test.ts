import { expect } from 'chai';
import { openTestWorkspace, sandboxes } from '../support/workspace.ts';
import { attackInspector } from './hostile-attempt.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

const mebibyte = 2 ** 20;
const limit = 128 * mebibyte;
/** Twice the limit, held by no process's own memory. */
const floods: Readonly<Record<string, string>> = {
  'memory files that are not mapped': `
files = []
for number in range(4):
    files.append(os.memfd_create('x'))
    os.write(files[-1], bytes(64 << 20))
`,
  'shared memory that is not attached': `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
for number in range(4):
    segment = libc.shmget(0, 64 << 20, 0o1600)
    if segment < 0: raise OSError('no shared memory')
    place = libc.shmat(segment, None, 0)
    ctypes.memset(place, 1, 64 << 20)
    libc.shmdt(ctypes.c_void_p(place))
`,
  'a file system in memory of a user namespace': `
import subprocess
subprocess.run(['unshare', '-Urm', 'sh', '-c', 'mount -t tmpfs x . && head -c 256M /dev/zero > y && sleep 40'], check=True, stderr=subprocess.DEVNULL)
`,
};
const forks = `
import os, signal
for number in range(16):
    if os.fork() == 0:
        held = bytearray(100 << 20)
        held[::4096] = b'x' * len(held[::4096])
        signal.pause()
signal.pause()
`;

describe('Memory that a taken-over yt-dlp takes', () => {
  let source: HostileSource;
  before(async () => {
    source = await startHostileSource();
  });
  after(() => source.stop());

  for (const sandbox of sandboxes) {
    for (const [title, text] of Object.entries(floods)) {
      it(`counts, or is refused: ${title} (sandbox ${sandbox})`, async () => {
        const place = await openTestWorkspace(sandbox, 1, {
          memoryBytes: limit,
          fileBytes: 2 ** 30,
          folderBytes: 2 ** 30,
        });
        const { lines } = await place.python(`
import os, time
try:
${text.replaceAll('\n', '\n    ')}
    time.sleep(40)
    print('held')
except (OSError, subprocess.CalledProcessError if 'subprocess' in dir() else OSError):
    print('refused')
`);
        await place.stop();
        expect(lines.includes('held'), 'held more than the limit').to.equal(false);
        expect(lines.includes('refused') || place.breaches.includes('memory')).to.equal(true);
      });
    }

    it(`ends an inspection whose processes together take too much (sandbox ${sandbox})`, async () => {
      const { outcome, left } = await attackInspector({ source, sandbox, url: source.lay(forks), seconds: 50 });
      expect(outcome).to.have.nested.property('failure.code', 'file_damaged');
      expect(left).to.deep.equal([]);
    });
  }
});

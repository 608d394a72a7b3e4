import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { expect } from 'chai';
import { attemptLooks, namelessFiles } from '../../src/worker/file-usage.ts';
import { aFolder } from '../support/redis.ts';
import { programs } from '../support/worker.ts';

/** The lowest mapping has a path of 75 KiB, the next one has 8 MiB without a name. */
const longPath = `
import ctypes, os, signal
libc = ctypes.CDLL(None)
top = os.open('.', os.O_RDONLY)
for number in range(300):
    os.mkdir('d' * 255)
    os.chdir('d' * 255)
for number in range(2):
    file = os.open('x', os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(8 << 20))
    os.unlink('x')
    at = (8 << 20) * (number + 1)
    libc.mmap(ctypes.c_void_p(at), ctypes.c_size_t(4096), 1, 0x11, file, ctypes.c_long(0))
    os.close(file)
    if number == 0:
        for deeper in range(300):
            os.chdir('..')
            os.rmdir('d' * 255)
        os.fchdir(top)
print('made', flush=True)
signal.pause()
`;

describe('The usage of files without a name', () => {
  it('is unlimited for a process with a mapping whose path is longer than can be read: all behind it counted nothing', async () => {
    const { folder, remove } = aFolder();
    const child = spawn(programs.python, ['-I', '-c', longPath], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    const { openFiles } = namelessFiles([child.pid ?? 0], new Set(), attemptLooks, realpathSync(folder));
    child.kill('SIGKILL');
    await once(child, 'exit');
    remove();
    expect(openFiles).to.equal(Number.POSITIVE_INFINITY);
  });
});

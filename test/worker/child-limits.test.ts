import { existsSync } from 'node:fs';
import { expect } from 'chai';
import type { Breach, ChildLimits } from '../../src/worker/child-limits.ts';
import { until } from '../support/until.ts';
import { processesOf } from '../support/worker.ts';
import { openTestWorkspace, sandboxes } from '../support/workspace.ts';

interface Row {
  readonly title: string;
  readonly limits: Partial<ChildLimits>;
  /** Python text; it prints what it reached. */
  readonly text: string;
  readonly breach: Breach | null;
  /** The output when the system itself enforces the limit. */
  readonly prints?: string;
}

const mebibyte = 2 ** 20;
const rows: readonly Row[] = [
  {
    title: 'a file without end',
    limits: { fileBytes: 4 * mebibyte },
    text: `
file = open('endless', 'wb')
try:
    while True: file.write(bytes(1 << 16))
except OSError as error:
    print(error.strerror, file.tell() <= 4 << 20)
`,
    breach: null,
    prints: 'File too large True',
  },
  {
    title: 'files without number',
    limits: { fileBytes: 8 * mebibyte, folderBytes: 16 * mebibyte },
    text: `
import signal
for number in range(64):
    open(f'{number}', 'wb').write(bytes(1 << 20))
signal.pause()
`,
    breach: 'folder',
  },
  {
    title: 'the memory of one process',
    limits: { memoryBytes: 256 * mebibyte },
    text: `
try:
    bytearray(1 << 30)
except MemoryError:
    print('no memory')
`,
    breach: null,
    prints: 'no memory',
  },
  {
    title: 'the memory of many processes',
    limits: { memoryBytes: 256 * mebibyte },
    text: `
import os, signal
for number in range(4):
    if os.fork() == 0:
        held = bytearray(b'x' * (96 << 20))
        signal.pause()
signal.pause()
`,
    breach: 'memory',
  },
  {
    title: 'the memory of processes whose first thread has ended',
    limits: { memoryBytes: 256 * mebibyte },
    text: `
import ctypes, os, signal, threading, time
def hold():
    # By then the first thread has ended, with whose status the memory would be seen.
    time.sleep(1)
    held = bytearray(b'x' * (96 << 20))
    signal.pause()
for number in range(4):
    if os.fork() == 0:
        threading.Thread(target=hold).start()
        ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)
signal.pause()
`,
    breach: 'memory',
  },
  {
    title: 'page tables of memory that is only reserved',
    limits: { memoryBytes: 96 * mebibyte },
    text: `
import ctypes, signal
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
# 64 GiB to read, private and without a file; a page of the table, of 4 KiB, stands for 2 MiB.
base = libc.mmap(None, ctypes.c_size_t(64 << 30), 1, 0x4022, -1, ctypes.c_long(0))
for place in range(base, base + (64 << 30), 2 << 20):
    ctypes.c_char.from_address(place).value
signal.pause()
`,
    breach: 'memory',
  },
  {
    title: 'processes without number',
    limits: { processes: 40, memoryBytes: 2 ** 34 },
    text: `
import os, signal
for number in range(1000):
    try:
        if os.fork() == 0: signal.pause()
    except OSError:
        pass
signal.pause()
`,
    breach: 'processes',
  },
  {
    title: 'the processor',
    limits: { cpuSeconds: 1 },
    text: `
import os, signal
for number in range(3):
    if os.fork() == 0:
        while True: pass
signal.pause()
`,
    breach: 'cpu',
  },
];

describe('Limits of the children of an attempt', () => {
  for (const sandbox of sandboxes) {
    for (const { title, limits, text, breach, prints } of rows) {
      it(`end ${title} (sandbox ${sandbox})`, async () => {
        const place = await openTestWorkspace(sandbox, 1, limits);
        const { lines, stderr } = await place.python(text);
        expect(place.breaches, stderr).to.deep.equal(breach ? [breach] : []);
        expect(lines).to.deep.equal(prints === undefined ? [] : [prints]);
        await place.stop();
        expect(existsSync(place.root)).to.equal(false);
        await until(() => processesOf(place.folder).length === 0, 2, 'no process is left');
      });
    }
  }
});

import { expect } from 'chai';
import { openTestWorkspace, sandboxes } from '../support/workspace.ts';
import { attackInspector } from './hostile-attempt.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

const mebibyte = 2 ** 20;
/** Each makes one file of 8 MiB; sixteen of them are twice what the folder may hold. */
const fills: Readonly<Record<string, string>> = {
  'files without a name': `
    files.append(os.open('x', os.O_RDWR | os.O_CREAT))
    os.write(files[-1], bytes(8 << 20))
    os.unlink('x')
`,
  'mapped files without a name': `
    file = os.open('x', os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(8 << 20))
    files.append(mmap.mmap(file, 8 << 20))
    os.close(file)
    os.unlink('x')
`,
  'files in folders whose paths are too long': `
    for deeper in range(0 if number else 20):
        open('f' * 250, 'w').close()
        os.mkdir('d' * 250)
        os.chdir('d' * 250)
    with open(f'x{number}', 'wb') as file: file.write(bytes(8 << 20))
`,
  'plain files': `
    with open(f'x{number}', 'wb') as file: file.write(bytes(8 << 20))
`,
};

const fill = (text: string) => `
import mmap, os, signal
files = []
for number in range(16):
    try:
${text.replaceAll('\n', '\n    ')}
    except OSError:
        pass
signal.pause()
`;

/** Costs no bytes, but inodes of the file system and time of whoever looks at it. */
const manyNames = (count: number) => `
import signal
for number in range(${count}):
    open(f'x{number}', 'w').close()
print('made', flush=True)
signal.pause()
`;
/** Neighbours of other rights stay apart. */
const manyMappings = (count: number) => `
import ctypes, os, signal
libc = ctypes.CDLL(None)
for number in range(6):
    if os.fork() == 0: break
for number in range(${count}):
    libc.mmap(None, ctypes.c_size_t(4096), number % 2, 0x22, -1, ctypes.c_long(0))
print('made', flush=True)
signal.pause()
`;

const manyOpenFiles = `
import os, signal
files = [os.open('/dev/null', os.O_RDONLY) for number in range(700)]
signal.pause()
`;

describe('Space that a taken-over yt-dlp fills', () => {
  let source: HostileSource;
  before(async () => {
    source = await startHostileSource();
  });
  after(() => source.stop());

  for (const sandbox of sandboxes) {
    for (const [title, text, breach] of [
      ['files without content', manyNames(15_000), 'folder'],
      ['mappings whose list takes long to read', manyMappings(60_000), 'processes'],
    ] as const) {
      it(`ends an attempt: ${title} (sandbox ${sandbox})`, async () => {
        const place = await openTestWorkspace(sandbox, 1, { cpuSeconds: 600 });
        await place.python(text);
        await place.stop();
        expect(place.breaches).to.deep.equal([breach]);
      });
    }
    for (const [title, text, code] of [
      ['files without content', manyNames(5_000), 'file_too_large'],
      ['mappings', manyMappings(10_000), 'worker_failed'],
      ['open files', manyOpenFiles, 'worker_failed'],
    ] as const) {
      it(`ends an inspection before looking through it keeps all others waiting: ${title} (sandbox ${sandbox})`, async () => {
        const { outcome, left } = await attackInspector({ source, sandbox, url: source.lay(text), seconds: 50 });
        expect(outcome).to.have.nested.property('failure.code', code);
        expect(left).to.deep.equal([]);
      });
    }
    for (const [title, text] of Object.entries(fills)) {
      it(`ends an attempt: ${title} (sandbox ${sandbox})`, async () => {
        const place = await openTestWorkspace(sandbox, 1, { fileBytes: 16 * mebibyte, folderBytes: 64 * mebibyte });
        await place.python(fill(text));
        await place.stop();
        expect(place.breaches).to.deep.equal(['folder']);
      });

      it(`ends an inspection: ${title} (sandbox ${sandbox})`, async () => {
        const { outcome, left } = await attackInspector({ source, sandbox, url: source.lay(fill(text)), seconds: 50 });
        expect(outcome).to.have.nested.property('failure.code', 'file_too_large');
        expect(left).to.deep.equal([]);
      });
    }
  }
});

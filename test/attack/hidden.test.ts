import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';

/** Twice what the folder of an inspection may hold, in files that only the table of open files shows. */
const text = (isHidden: boolean) => `
import ctypes, os, signal
if ${isHidden ? 'True' : 'False'}: ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
files = []
for number in range(16):
    files.append(os.open('x', os.O_RDWR | os.O_CREAT))
    os.write(files[-1], bytes(8 << 20))
    os.unlink('x')
signal.pause()
`;

/** Of a file that is mapped but open nowhere, only root sees more than what is mapped. */
const mapped = `
import ctypes, os, signal
libc = ctypes.CDLL(None)
for number in range(16):
    file = os.open('x', os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(8 << 20))
    os.unlink('x')
    libc.mmap(None, ctypes.c_size_t(4096), 1, 1, file, ctypes.c_long(0))
    os.close(file)
signal.pause()
`;

/** Attacks a worker or an inspector that has no capability, as in a pod: a process that hides its memory then hides its open files too. */
async function attack(kind: 'attempt' | 'inspection', python: string): Promise<unknown> {
  const rights = ['--bounding-set=-all', '--inh-caps=-all'];
  const script = [process.execPath, join(import.meta.dirname, 'without-rights.ts'), kind, 'none', python];
  const { stdout } = await promisify(execFile)('setpriv', [...rights, ...script]);
  return JSON.parse(stdout);
}

describe('Open files that a taken-over yt-dlp hides from a worker without rights', () => {
  it('end its inspection when they are too large, though the inspector keeps its children apart', async () => {
    expect(await attack('inspection', text(false))).to.have.nested.property('outcome.failure.code', 'file_too_large');
  });

  it('end its inspection: they could fill the disk of the node until its time was over', async () => {
    const { outcome, left } = (await attack('inspection', text(true))) as { outcome: object; left: readonly string[] };
    expect(outcome).to.have.nested.property('failure.code', 'worker_failed');
    expect(left).to.deep.equal([]);
  });

  it('end its attempt', async () => {
    expect(await attack('attempt', text(true))).to.deep.include({
      outcome: { is: 'failed', code: 'worker_failed' },
      left: [],
    });
  });

  for (const kind of ['attempt', 'inspection'] as const) {
    it(`end its ${kind} when one page of each is mapped: they counted as that page`, async () => {
      const { outcome, left } = (await attack(kind, mapped)) as { outcome: object; left: readonly string[] };
      expect(JSON.stringify(outcome)).to.include('"code":"file_too_large"');
      expect(left).to.deep.equal([]);
    });
  }
});

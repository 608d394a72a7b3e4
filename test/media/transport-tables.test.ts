import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';

const programs = ['-map', '0', '-map', '1', '-program', 'st=0:st=1', '-program', 'st=2:st=3'];

describe('A broadcast', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
  });
  after(() => source.stop());
  const good = async (name: string) =>
    expect(await source.make('video', name, {}, ({ file }) => expectMarks(file))).to.equal(undefined);

  it('D33: is delivered where only a program beside its own goes on in another codec', async () => {
    for (const [name, start, codec] of [
      ['first.ts', 0, 'copy'],
      ['second.ts', 5, 'ac3'],
    ] as const) {
      const part = ['-ss', String(start), '-t', '5', '-i', source.film];
      await source.ffmpeg(...part, ...part, ...programs, '-c:v', 'libx264', '-c:a', 'aac', '-c:a:1', codec, name);
    }
    source.write('beside.ts', Buffer.concat(['first.ts', 'second.ts'].map((name) => readFileSync(source.path(name)))));
    await good('beside.ts');
  });

  it('D33: is delivered where one of its tables has wrong bits in the codec of its sound', async () => {
    await source.ffmpeg('-i', source.film, '-c', 'copy', 'bit.ts');
    const packets = readFileSync(source.path('bit.ts'));
    packets.writeUInt8(0x03, packets.lastIndexOf(Buffer.from([0x0f, 0xe1, 0x01])));
    source.write('bit.ts', packets);
    await good('bit.ts');
  });
});

import { createCipheriv } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';

/** Keys of five pieces of two seconds, of which the third has another one. */
const [first, other] = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)];
const vector = Buffer.alloc(16);

describe('A stream of encrypted pieces', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    await source.ffmpeg(
      '-i',
      source.film,
      '-c',
      'copy',
      '-f',
      'hls',
      '-hls_time',
      '2',
      '-hls_list_size',
      '0',
      'list.m3u8',
    );
    source.write('first.key', first);
    for (const n of [0, 1, 2, 3, 4]) {
      const cipher = createCipheriv('aes-128-cbc', n === 2 ? other : first, vector);
      source.write(`${n}.ts`, Buffer.concat([cipher.update(readFileSync(source.path(`list${n}.ts`))), cipher.final()]));
    }
  });
  after(() => source.stop());

  /** Writes a list whose third piece has this name and a key of its own; returns its name. */
  const write = (name: string, key: string | Buffer, piece = '2.ts') => {
    source.write(`${name}.key`, key);
    const lines = [0, 1, 2, 3, 4].map((n) => {
      const uri = n === 2 ? name : 'first';
      return `#EXT-X-KEY:METHOD=AES-128,URI="${uri}.key",IV=0x00\n#EXTINF:2,\n${n === 2 ? piece : `${n}.ts`}\n`;
    });
    source.write(`${name}.m3u8`, `#EXTM3U\n#EXT-X-TARGETDURATION:2\n${lines.join('')}#EXT-X-ENDLIST\n`);
    return `${name}.m3u8`;
  };

  it('D33: is delivered whole where its key changes in its middle', async () => {
    const ended = await source.make('video', write('right', other), {}, ({ file }) => expectMarks(file));
    expect(ended).to.equal(undefined);
  });

  it('D91: is incomplete where one of its keys is wrong, so that a piece is noise', async () => {
    const ended = await source.make('video', write('wrong', Buffer.alloc(16, 3)), {}, () => 'a file');
    expect(ended).to.match(/^source_incomplete/);
  });

  it('D91: is incomplete where noise holds three bytes of a transport stream in its places', async () => {
    const noise = Buffer.alloc(9_600, 0x80);
    for (const n of [1, 2, 3]) noise.write('G', 188 * n);
    const cipher = createCipheriv('aes-128-cbc', other, vector);
    source.write('noise.ts', Buffer.concat([cipher.update(noise), cipher.final()]));
    const ended = await source.make('video', write('noise', other, 'noise.ts'), {}, () => 'a file');
    expect(ended).to.match(/^source_incomplete/);
  });

  it('D91: is incomplete where its server answers for a key with a page', async () => {
    const ended = await source.make('video', write('page', '<html>Sign in</html>'), {}, () => 'a file');
    expect(ended).to.match(/^source_incomplete/);
  });

  it('D91: is incomplete where its server answers for an encrypted piece with a page', async () => {
    source.write('refused.ts', '<html>Too many requests</html>');
    const ended = await source.make('video', write('refused', other, 'refused.ts'), {}, () => 'a file');
    expect(ended).to.match(/^source_incomplete/);
  });
});

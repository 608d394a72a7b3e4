import { expect } from 'chai';
import { sandboxes } from '../support/workspace.ts';
import { startHostilePool } from './hostile-pool.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

/** Reports how many of some words lie anywhere in the memory of the process. They are given with each letter moved by one, and so is what is searched: the text holds none. */
const search = `
import ctypes, os
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
near, far = os.pipe()
sought = [word.encode() for word in given['moved']]
move = bytes((n + 1) % 256 for n in range(256))
def read(address, size):
    # The kernel tells which addresses have memory.
    written = libc.write(far, ctypes.c_void_p(address), size)
    return os.read(near, written) if written > 0 else b''
anchors = {id(object()), id('x' * 5000), id([0] * 100000), libc.malloc(100), libc.malloc(5000), id(os), ctypes.addressof(ctypes.c_char.in_dll(libc, 'environ'))}
pages, found = set(), {}
for anchor in anchors:
    pages.update(range((anchor >> 12) - 40000, (anchor >> 12) + 40000))
before = b''
for page in sorted(pages):
    piece = read(page << 12, 4096).translate(move)
    whole = before + piece
    for word in sought:
        if word in whole: found[word] = True
    before = piece[-64:]
report('found ' + ' '.join(sorted(word.decode() for word in found)))
`;

describe('The memory of a taken-over inspection', () => {
  let source: HostileSource;
  before(async () => {
    source = await startHostileSource();
  });
  after(() => source.stop());

  for (const sandbox of sandboxes) {
    it(`holds neither the URL nor the answer of another one, before or at the same time (sandbox ${sandbox})`, async () => {
      const pool = await startHostilePool(source, sandbox);
      try {
        const [own, first, title, second] = [
          'ItsOwnUrl80',
          'UrlOfTheFirst81',
          'TitleOfTheFirst82',
          'UrlOfTheSecond83',
        ] as const;
        const film = `info = {'title': 'x' + given['title'] * 50, 'url': source + '/film.mp4', 'ext': 'mp4', 'duration': 1, 'height': 1, 'vcodec': 'h264'}`;
        expect(await pool.inspect(`${source.lay(film, { title })}?${first}`)).to.have.nested.property(
          'metadata.ext',
          'mp4',
        );
        const moved = [own, first, title, second].map(moveLetters);
        const hostile = `${source.lay(search, { moved })}?${own}`;
        const both = [pool.inspect(hostile), pool.inspect(`${source.lay(film, { title })}?${second}`)];
        await Promise.all(both);
        await pool.inspect(hostile);
        expect(source.reports).to.deep.equal([`found ${moveLetters(own)}`, `found ${moveLetters(own)}`]);
      } finally {
        await pool.close();
      }
    });
  }
});

function moveLetters(word: string): string {
  return String.fromCharCode(...Buffer.from(word).map((byte) => byte + 1));
}

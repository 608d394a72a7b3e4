import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readCookies } from '../../src/controller/cookies.ts';
import { aFolder, aLog } from '../support/redis.ts';

describe('the cookies of a site', () => {
  let folder: string;
  let remove: () => void;
  const { log, lines } = aLog();
  const read = (url: unknown) => readCookies(folder, url, log);
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

  beforeEach(() => {
    ({ folder, remove } = aFolder());
    lines.length = 0;
  });
  afterEach(() => remove());

  it('are those of the longest name that the host ends with', async () => {
    write('example.com.txt', 'of all');
    write('video.example.com.txt', 'of videos');
    expect(await read('https://a.video.example.com/x')).to.equal('of videos');
    expect(await read('https://www.example.com/x')).to.equal('of all');
    expect(await read('https://EXAMPLE.com:8443/x')).to.equal('of all');
    for (const url of ['https://badexample.com/x', 'https://com/', 'https://a/../../x', 'no url', undefined]) {
      expect(await read(url), String(url)).to.equal(null);
    }
    expect(await readCookies(null, 'https://example.com', log)).to.equal(null);
    expect(lines).to.deep.equal([]);
  });

  it('may stand behind a link, as in a Secret that is mounted', async () => {
    mkdirSync(join(folder, '..data'));
    write('..data/example.com.txt', 'linked');
    symlinkSync('..data/example.com.txt', join(folder, 'example.com.txt'));
    expect(await read('https://example.com/')).to.equal('linked');
  });

  it('are not used when the file is too large or a folder, and the log does not show them', async () => {
    write('example.com.txt', 'secret '.repeat(40_000));
    mkdirSync(join(folder, 'other.org.txt'));
    for (const url of ['https://example.com/', 'https://other.org/']) {
      lines.length = 0;
      expect(await read(url)).to.equal(null);
      expect(lines.join('')).to.include('cannot be read').and.include('.txt').and.not.include('secret');
    }
    write('example.com.txt', 'x'.repeat(256 * 1024));
    expect(await read('https://example.com/')).to.have.length(256 * 1024);
  });
});

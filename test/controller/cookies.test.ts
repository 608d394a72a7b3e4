import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { openCookies } from '../../src/controller/cookies.ts';
import { aFolder, aLog } from '../support/redis.ts';

const cookie = (value: string) => `.example.com\tTRUE\t/\tTRUE\t0\tsession\t${value}`;
const fileOf = (...lines: string[]) => ['# Netscape HTTP Cookie File', ...lines].join('\n');

describe('the cookies of a site', () => {
  let folder: string;
  let remove: () => void;
  const { log, lines } = aLog();
  let read: ReturnType<typeof openCookies>;
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

  beforeEach(() => {
    ({ folder, remove } = aFolder());
    read = openCookies(folder, log);
    lines.length = 0;
  });
  afterEach(() => remove());

  it('are those of the longest name that the host ends with', async () => {
    write('example.com.txt', cookie('of all'));
    write('video.example.com.txt', cookie('of videos'));
    expect(await read('https://a.video.example.com/x')).to.equal(fileOf(cookie('of videos')));
    expect(await read('https://www.example.com/x')).to.equal(fileOf(cookie('of all')));
    expect(await read('https://EXAMPLE.com:8443/x')).to.equal(fileOf(cookie('of all')));
    for (const url of ['https://badexample.com/x', 'https://com/', 'https://a/../../x', 'no url', undefined]) {
      expect(await read(url), String(url)).to.equal(null);
    }
    expect(await openCookies(null, log)('https://example.com')).to.equal(null);
    expect(lines).to.deep.equal([]);
  });

  it('are those of a shorter name when the host is too long for the name of a file', async () => {
    write('example.com.txt', cookie('of all'));
    const host = `${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(58)}.example.com`;
    expect(host).to.have.length(253);
    expect(await read(`https://${host}/x`)).to.equal(fileOf(cookie('of all')));
    expect(lines).to.deep.equal([]);
  });

  it('may stand behind a link, as in a Secret that is mounted', async () => {
    mkdirSync(join(folder, '..data'));
    write('..data/example.com.txt', cookie('linked'));
    symlinkSync('..data/example.com.txt', join(folder, 'example.com.txt'));
    expect(await read('https://example.com/')).to.equal(fileOf(cookie('linked')));
  });

  it('are not used when the file is too large or a folder, and the log does not show them', async () => {
    write('example.com.txt', 'secret '.repeat(40_000));
    mkdirSync(join(folder, 'other.org.txt'));
    for (const url of ['https://example.com/', 'https://other.org/']) {
      lines.length = 0;
      expect(await read(url)).to.equal(null);
      expect(lines.join('')).to.include('cannot be read').and.include('.txt').and.not.include('secret');
    }
    lines.length = 0;
    expect(await read('https://example.com/')).to.equal(null);
    expect(lines).to.deep.equal([]);
    const large = cookie('x'.repeat(256 * 1024 - cookie('').length));
    write('example.com.txt', large);
    expect(await read('https://example.com/')).to.equal(fileOf(large));
  });

  it('are read without the lines that yt-dlp would quote in its messages, and the log names these by their numbers', async () => {
    const good = [
      'example.com\tFALSE\t/\tFALSE\t1893456000.5\ta\tb',
      '#HttpOnly_.example.com\tTRUE\t/\tTRUE\t\ta\t',
      cookie('of all'),
    ];
    write('example.com.txt', ['\ufeff# Netscape HTTP Cookie File', '', ...good, '  # end', ''].join('\r\n'));
    expect(await read('https://example.com/')).to.equal(fileOf(...good));
    expect(lines).to.deep.equal([]);

    const bad = [
      '.example.com\tFALSE\t/\tTRUE\t0\tsession\tsecret',
      'example.com\tTRUE\t/\tTRUE\t0\tsession\tsecret',
      '#HttpOnly_.example.com\tFALSE\t/\tTRUE\t0\tsession\tsecret',
      '.example.com TRUE / TRUE 0 session secret',
      `.example.com\tTRUE\t/\tTRUE\t${'9'.repeat(400)}\tsession\tsecret`,
      '.example.com\tTRUE\t/\tTRUE\tsoon\tsession\tsecret',
      '[{"name": "session", "value": "secret"}]',
    ];
    write('example.com.txt', [...bad, ...good].join('\n'));
    expect(await read('https://example.com/')).to.equal(fileOf(...good));
    expect(lines.join('')).to.include('example.com.txt').and.include('[1,2,3,4,5,6,7]').and.not.include('secret');
  });

  it('have a fault logged once for each content of their file, not for each job', async () => {
    for (const text of ['no cookie', 'no cookie', 'neither', cookie('mended'), 'neither']) {
      write('example.com.txt', text);
      for (let job = 0; job < 3; job++) await read('https://example.com/');
    }
    expect(lines).to.have.length(3);
  });
});

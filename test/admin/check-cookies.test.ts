import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { checkCookies } from '../../src/admin/check-cookies.ts';
import { aFolder } from '../support/redis.ts';

const cookie = '.example.com\tTRUE\t/\tTRUE\t0\tsession\tsecret';

describe('the doctor, of cookie files', () => {
  let folder: string;
  let remove: () => void;
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  const judge = async (cookies: string | null = folder) =>
    (await checkCookies({ cookies })).map(({ level, about, text }) => `${level} ${about}: ${text}`);

  beforeEach(() => {
    ({ folder, remove } = aFolder());
  });
  afterEach(() => remove());

  it('says nothing where none are set, and names the sites where all are good', async () => {
    expect(await judge(null)).to.deep.equal([]);
    mkdirSync(join(folder, '..data'));
    write('example.com.txt', cookie);
    expect(await judge()).to.deep.equal([`ok cookies: ${folder} has cookies of example.com.`]);
  });

  it('names a file with lines that are no cookies by their numbers, and shows none of them', async () => {
    write('example.com.txt', `no secret\n${cookie}\n# end\n[{"name": "secret"}]`);
    write('example.org.txt', cookie);
    expect(await judge()).to.deep.equal([
      'problem cookies: The cookie file example.com.txt has lines that are no cookies, which are left out: 1, 4. Correct them, or export it again in the Netscape format.',
    ]);
  });

  it('names a file that brings no cookie, is too large or cannot be read', async () => {
    write('a.com.txt', '# Netscape HTTP Cookie File\n');
    write('b.com.txt', 'x'.repeat(300_000));
    mkdirSync(join(folder, 'c.com.txt'));
    expect(await judge()).to.deep.equal([
      'problem cookies: The cookie file a.com.txt has no cookie: export it again in the Netscape format.',
      'problem cookies: The cookie file b.com.txt has 300000 bytes, and 262144 are allowed: its site is fetched without cookies.',
      'problem cookies: The cookie file c.com.txt cannot be read: EISDIR: illegal operation on a directory, read.',
    ]);
  });

  it('says that a folder has no cookie file, or is not there, for which no job fails', async () => {
    write('example.com', cookie);
    expect((await judge())[0]).to.match(/^note cookies: .* has no file such as example\.com\.txt/);
    rmSync(folder, { recursive: true });
    expect((await judge())[0]).to.match(/^problem cookies: The folder of TRAWL_COOKIES cannot be read: ENOENT/);
  });
});

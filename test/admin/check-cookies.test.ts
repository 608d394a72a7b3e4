import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { checkCookies } from '../../src/admin/check-cookies.ts';
import { startOperator } from '../support/operator.ts';
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

describe('admin cookies check', () => {
  it('lists each file with its site, the expiry of its last cookie and its state, and no word of what is in it', async () => {
    const { folder, remove } = aFolder();
    const operator = await startOperator();
    const at = (expiry: number | string) => cookie.replace('\t0\t', `\t${expiry}\t`);
    const files: Record<string, string> = {
      'a.example.txt': `${at(4_102_444_800)}\n${at(1)}`,
      'b.example.txt': `${at(1)}\n${at(2)}`,
      'c.example.txt': cookie,
      'd.example.txt': `secret\n${at(1)}`,
      'e.example.txt': at('9'.repeat(20)),
    };
    try {
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
      const { code, out } = await operator.run(['cookies', 'check', '--json'], { TRAWL_COOKIES: folder });
      expect({ code, files: JSON.parse(out) }).to.deep.equal({
        code: 0,
        files: [
          { site: 'a.example', file: 'a.example.txt', expires_at: '2100-01-01T00:00:00.000Z', state: 'good' },
          { site: 'b.example', file: 'b.example.txt', expires_at: '1970-01-01T00:00:02.000Z', state: 'expired' },
          { site: 'c.example', file: 'c.example.txt', expires_at: null, state: 'good' },
          { site: 'd.example', file: 'd.example.txt', expires_at: '1970-01-01T00:00:01.000Z', state: 'faulty' },
          { site: 'e.example', file: 'e.example.txt', expires_at: '+275760-09-13T00:00:00.000Z', state: 'good' },
        ],
      });
      expect((await operator.run(['cookies', 'check', '--json'])).out).to.equal('[]\n');
      const away = await operator.run(['cookies', 'check', '--json'], { TRAWL_COOKIES: join(folder, 'none') });
      expect({ exit: away.code, code: JSON.parse(away.out).code }).to.deep.equal({ exit: 1, code: 'not_found' });
    } finally {
      await operator.stop();
      remove();
    }
  });
});

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { findCredentials } from '../../src/client/credentials.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { startCommand } from '../support/caller.ts';
import { aFolder } from '../support/redis.ts';

describe('trawl login', () => {
  let api: TestApi;
  let folder: string;
  let remove: () => void;
  const file = () => join(folder, '.config', 'trawl', 'credentials.json');
  const login = async (args: readonly string[], input = '') => {
    const command = startCommand(['login', ...args], folder, { [`TRAWL_${'UNKNOWN'}`]: 'ignored' }, input);
    return { code: await command.ended, out: command.out(), err: command.err() };
  };
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());
  beforeEach(() => {
    ({ folder, remove } = aFolder());
  });
  afterEach(() => remove());

  it('keeps address and key for their owner alone, also where a file was open to others', async () => {
    const { key } = await api.addCaller();
    mkdirSync(join(folder, '.config', 'trawl'), { recursive: true });
    writeFileSync(file(), '{}', { mode: 0o644 });
    const { code, out, err } = await login([`${api.url}/`], `${key}\n`);
    expect([code, err], out).to.deep.equal([0, '']);
    expect(statSync(file()).mode & 0o777).to.equal(0o600);
    expect(JSON.parse(readFileSync(file(), 'utf8'))).to.deep.equal({ url: api.url, key });
    expect(out).not.to.contain(key);
  });

  it('keeps nothing when the service refuses the key or the line is wrong, and never shows the key', async () => {
    const refused = await login([api.url, 'trawl_wrong']);
    expect([refused.code, refused.err]).to.deep.equal([3, 'Invalid API Key\n']);
    const wrong = await login(['not-an-address', 'trawl_wrong']);
    expect(wrong.code).to.equal(2);
    expect(wrong.err)
      .to.match(/^URL must be an http/)
      .and.not.contain('trawl_wrong');
    expect((await login([])).code).to.equal(2);
    expect(() => statSync(file())).to.throw('ENOENT');
  });

  it('sends a kept key to no other address than its own', () => {
    const env = { HOME: folder };
    mkdirSync(join(folder, '.config', 'trawl'), { recursive: true });
    writeFileSync(file(), JSON.stringify({ url: 'https://one.example', key: 'kept' }));
    expect(findCredentials(env)).to.deep.equal({ url: 'https://one.example', key: 'kept' });
    expect(() => findCredentials({ ...env, TRAWL_API_URL: 'https://two.example' })).to.throw('No key is known');
    const other = { TRAWL_API_URL: 'https://two.example/', TRAWL_API_KEY: 'own' };
    expect(findCredentials({ ...env, ...other })).to.deep.equal({ url: 'https://two.example', key: 'own' });
  });

  it('tells of kept credentials that are none or cannot be read, and asks nobody', async () => {
    mkdirSync(join(folder, '.config', 'trawl'), { recursive: true });
    const get = async () => {
      const got = startCommand(['get', 'https://films.example/clip.mp4'], folder, {});
      return [await got.ended, got.out(), got.err().split('\n')[0]];
    };
    for (const kept of ['null', '[]', '{', '{"url":"x","key":"k"}', `{"url":"${api.url}","key":"a b"}`]) {
      writeFileSync(file(), kept);
      expect(await get(), kept).to.deep.equal([2, '', `${file()} cannot be understood: run 'trawl login' again`]);
    }
    rmSync(file());
    mkdirSync(file());
    expect(await get()).to.deep.equal([
      2,
      '',
      `${file()} cannot be read: EISDIR: illegal operation on a directory, read`,
    ]);
  });

  it('says in a sentence that nothing can be kept where a file or a folder is in the way', async () => {
    const { key } = await api.addCaller();
    const config = join(folder, '.config');
    const waysIn: [() => void, string][] = [
      [() => writeFileSync(config, ''), `ENOTDIR: not a directory, mkdir '${config}/trawl'`],
      [() => mkdirSync(file(), { recursive: true }), 'EISDIR: illegal operation on a directory, rename '],
    ];
    for (const [hinder, why] of waysIn) {
      rmSync(config, { recursive: true, force: true });
      hinder();
      const { code, out, err } = await login([api.url, key]);
      expect([code, out], err).to.deep.equal([1, '']);
      expect(err.startsWith(`${file()} cannot be written: ${why}`), err).to.equal(true);
      expect(err.trimEnd().split('\n')).to.have.length(1);
    }
  });

  it('asks by the proxy of its environment when NODE_USE_ENV_PROXY is set', async () => {
    const { key } = await api.addCaller();
    const asked: string[] = [];
    const proxy = createServer().on('connect', ({ url = '' }, socket) => {
      asked.push(url);
      const onward = connect(Number(new URL(api.url).port), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connected\r\n\r\n');
        onward.pipe(socket).pipe(onward);
      });
      for (const end of [onward, socket]) end.on('error', () => [onward, socket].map((one) => one.destroy()));
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    try {
      const own = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
      const command = startCommand(['login', 'http://service.invalid', key], folder, own);
      expect(await command.ended, command.err()).to.equal(0);
      expect(asked).to.deep.equal(['service.invalid:80']);
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  });
});

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readKey } from '../../src/model/api-key.ts';
import { openStateFolder } from '../../src/roles/state-folder.ts';
import { listAccounts } from '../../src/store/accounts/read-accounts.ts';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { listPlans } from '../../src/store/accounts/read-plans.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import type { FollowedChild } from '../support/followed-child.ts';
import { trawl } from '../support/operator.ts';
import { storeOf } from '../support/record.ts';
import { aFolder, startTestRedis } from '../support/redis.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { root } from '../support/tree.ts';
import { until } from '../support/until.ts';
import { processesIn, type RunningUp, spawnUp, startUp } from '../support/up.ts';

const publicFilm = /https:\/\/media\.w3\.org\/\S+/;

describe('the first start', () => {
  let folder: string;
  let remove: () => void;
  let source: Source;
  let started: FollowedChild[] = [];
  before(async () => {
    source = await startSource();
  });
  after(() => source.stop());
  beforeEach(() => {
    ({ folder, remove } = aFolder());
  });
  afterEach(async () => {
    for (const { process, ended } of started) {
      process.kill('SIGTERM');
      await ended;
    }
    started = [];
    await until(() => processesIn(folder).length === 0, 10, 'no process of a test is left');
    remove();
  });

  const keep = <U extends FollowedChild>(up: U): U => {
    started.push(up);
    return up;
  };
  const settings = (data: string) => ({ TRAWL_DATA: data, TRAWL_EGRESS_ALLOW: '127.0.0.1:*' });
  /** The lines for a shell, as they are printed but for the film's URL: nothing outside is reached here. */
  const linesOf = async (up: RunningUp, program = `'${join(root, 'trawl')}'`) => {
    const lines = () => up.output().match(/^ {2}(?:TRAWL_API_URL=|curl ).*$/gm) ?? [];
    await until(() => lines().length === 2, 5, 'two lines to paste');
    return lines().map((line) => line.replace(publicFilm, `${source.url}/films/clip.mp4`).replace('./trawl', program));
  };
  const keyOf = (lines: readonly string[]) => /'x-api-key: (\S+)'/.exec(lines[1] ?? '')?.[1] ?? '';
  const paste = (lines: readonly string[], cwd: string) =>
    new Promise<string>((resolve) => {
      const shell = spawn('sh', { cwd, stdio: ['pipe', 'pipe', 'ignore'] });
      let out = '';
      shell.stdout.setEncoding('utf8').on('data', (text) => {
        out += text;
      });
      shell.once('close', () => resolve(out));
      shell.stdin.end(`${lines.join('\n')}\n`);
    });
  const usage = async ({ url }: RunningUp, key: string) => {
    const answer = await fetch(`${url}/v1/usage`, { headers: { 'x-api-key': key } });
    return { status: answer.status, ...((await answer.json()) as { remaining: number; held: number }) };
  };

  it('prints lines that a shell runs as they are, from the account to a film that plays, for one credit', async () => {
    const data = join(folder, 'data');
    const up = keep(await startUp(settings(data)));
    const lines = await linesOf(up);
    const out = await paste(lines, folder);
    expect(out)
      .to.match(/^clip\.mp4\n/)
      .and.match(/"remaining":99\b/);
    const probed = spawnSync(
      'ffprobe',
      ['-v', 'error', '-show_entries', 'stream=codec_type', '-of', 'csv=p=0', 'clip.mp4'],
      {
        cwd: folder,
        encoding: 'utf8',
      },
    );
    expect([probed.stderr, probed.stdout.trim().split('\n').sort()]).to.deep.equal(['', ['audio', 'video']]);
    execFileSync('ffmpeg', ['-v', 'error', '-xerror', '-i', 'clip.mp4', '-f', 'null', '-'], { cwd: folder });
    expect(await usage(up, keyOf(lines))).to.include({ remaining: 99, held: 0 });
    const seen = async () => {
      const { out } = await trawl(['admin', 'log', 'show', 'sample', '--json'], { TRAWL_DATA: data });
      const download = (JSON.parse(out) as { endpoint: string; status: number; credits: number }[]).filter(
        ({ endpoint }) => endpoint.endsWith(' /v1/video/download'),
      );
      return download.length === 2 ? download.reverse() : null;
    };
    const told = await until(seen, 10, 'two lines of the log');
    expect(told?.map(({ status, credits }) => [status, credits])).to.deep.equal([
      [202, 0],
      [201, 1],
    ]);
    expect(up.output()).not.to.contain('\x1b');
  });

  it('works from a tree and in a data folder whose paths have spaces', async () => {
    const tree = join(folder, 'a tree with spaces');
    mkdirSync(tree);
    for (const name of ['trawl', 'package.json', 'src'])
      cpSync(join(root, name), join(tree, name), { recursive: true });
    for (const name of ['node_modules', '.cache']) symlinkSync(join(root, name), join(tree, name));
    const up = keep(await startUp(settings(join(folder, 'its data')), tree));
    await paste(await linesOf(up, './trawl'), tree);
    execFileSync('ffmpeg', ['-v', 'error', '-xerror', '-i', 'clip.mp4', '-f', 'null', '-'], { cwd: tree });
  });

  it('a first start that is killed before any of its Redis commands is finished by the next start', async () => {
    const redis = await startTestRedis({ fsync: 'always' });
    const store = storeOf(redis.connection);
    const start = (commands: number) => {
      const script = join(root, 'test', 'support', 'first-start.ts');
      const { signal, stdout, stderr } = spawnSync(process.execPath, [script, redis.url, folder, String(commands)], {
        encoding: 'utf8',
      });
      expect(stderr).to.equal('');
      return { killed: signal === 'SIGKILL', key: stdout.trim() };
    };
    let kills = 0;
    try {
      for (; ; kills++) {
        await redis.flush();
        const first = start(kills);
        if (!first.killed) break;
        const second = start(Number.POSITIVE_INFINITY);
        if (first.key) expect(second.key).to.equal(first.key);
        const [[slug, account] = ['', ''], ...others] = await listAccounts(store);
        expect([slug, others, (await listPlans(store)).length]).to.deep.equal(['sample', [], 1]);
        expect((await readSnapshot(store, account)).balances).to.include({ credits_given: 100, credits_consumed: 0 });
        expect(await verifyLedger(store, account)).to.deep.equal({ entries: 1, problems: [] });
        expect((await listKeys(store, account)).map(({ id }) => id)).to.deep.equal([readKey(second.key)?.keyId]);
        expect(readdirSync(folder)).to.deep.equal([]);
      }
      expect(start(Number.POSITIVE_INFINITY).key).to.equal('');
      expect(kills).to.be.above(6);
    } finally {
      await redis.stop();
    }
  });

  it('a first start that is killed whole at any stage is followed by another first start', async () => {
    const data = join(folder, 'data');
    let said = '';
    for (const stage of ['lock', 'secret', 'redis', 'redis/redis.sock', 'gateway.sock']) {
      const up = keep(spawnUp(settings(data)));
      await until(() => existsSync(join(data, stage)), 20, `${stage} is there`);
      up.process.kill('SIGKILL');
      await up.ended;
      await until(() => processesIn(folder).length === 0, 10, 'its parts have ended');
      said += up.output();
    }
    const up = keep(await startUp(settings(data)));
    const told = () => /'x-api-key: (\S+)'/.exec(said + up.output())?.[1];
    const key = await until(told, 10, 'the key');
    expect(await usage(up, key ?? '')).to.include({ status: 200, remaining: 100, held: 0 });
    const { out } = await trawl(['admin', 'account', 'list', '--json'], { TRAWL_DATA: data });
    expect(JSON.parse(out)).to.have.length(1);
  });

  it('a start that is killed before Redis has written leaves no empty folder, which the next one would take for a disk that is not mounted', async () => {
    const data = join(folder, 'data');
    const config = { data, secret: null, redisUrl: null, objects: 'folder' } as const;
    for (let n = 0; n < 2; n++) {
      const { release } = await openStateFolder(config);
      expect(readdirSync(join(data, 'redis'))).to.deep.equal(['appendonlydir']);
      await release();
    }
  });

  it('shows a line that counts jobs in a terminal alone', async () => {
    const data = join(folder, 'data');
    const up = keep(await startUp(settings(data), root, 'terminal'));
    await until(() => up.output().includes('\x1b[K0 queued, 0 running, 0 done, 0 failed\r'), 10, 'the line');
    const lines = await linesOf(up);
    await paste(lines, folder);
    await paste([lines[0]!.replace('films/clip.mp4', 'status/404')], folder);
    await until(() => up.output().includes('\x1b[K0 queued, 0 running, 1 done, 1 failed\r'), 20, 'one more of each');
  });
});

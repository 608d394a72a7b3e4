import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { findCgroup, openCgroup } from '../../src/base/cgroup.ts';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { startInspectorPool } from '../../src/worker/inspector-pool.ts';
import { programFolders, type Sandbox, sandboxCommand } from '../../src/worker/sandbox-command.ts';
import { laySeccompFilter } from '../../src/worker/seccomp-filter.ts';
import { startGateway, token } from '../support/gateway.ts';
import { python } from '../support/media.ts';
import { startProxy, type TestProxy } from '../support/proxy.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { programs } from '../support/worker.ts';
import { openTestWorkspace } from '../support/workspace.ts';

const leastTurns = 7;
const longestMilliseconds = 40_000;
const hostile = join(import.meta.dirname, '..', 'support', 'hostile');
const ytDlp = join(dirname(python), 'yt-dlp');
const launcher = join(import.meta.dirname, '..', '..', 'trawl');

interface Times {
  readonly one: number;
  readonly other: number;
}

/** Both are measured in turns; `typical` says which of the times counts. A busy machine gets more turns. */
async function compare(
  one: () => unknown,
  other: () => unknown,
  isEnough: (times: Times) => boolean,
  typical: (times: readonly number[]) => number = medianOf,
): Promise<Times> {
  const end = performance.now() + longestMilliseconds;
  const [ones, others]: [number[], number[]] = [[], []];
  for (;;) {
    ones.push(await measure(one));
    others.push(await measure(other));
    const times = { one: typical(ones), other: typical(others) };
    if (ones.length >= leastTurns && (isEnough(times) || performance.now() > end)) return times;
  }
}

function medianOf(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0;
}

async function measure(action: () => unknown): Promise<number> {
  const begin = performance.now();
  await action();
  return performance.now() - begin;
}

// Ratios are judged where little else runs: in the long form of the suite.
if (process.env.ROUNDS !== undefined)
  describe('Costs compared with the yt-dlp command in one run', () => {
    let source: Source;
    let proxy: TestProxy;
    const { folder, remove } = aFolder();

    before(async () => {
      source = await startSource();
      proxy = await startProxy((host) => host === source.host);
    });
    after(async () => {
      await proxy.stop();
      await source.stop();
      remove();
    });

    const runYtDlp = async (...words: string[]) => {
      const args = ['--ignore-config', '--quiet', '--proxy', proxy.url, ...words];
      const [code] = await once(spawn(ytDlp, args, { cwd: folder, stdio: 'ignore' }), 'close');
      expect(code).to.equal(0);
    };

    it('warm metadata takes at most 0.2 of the time of the command', async () => {
      // An extractor that asks nothing of the network: what is left is what yt-dlp itself takes.
      const url = 'http://attack.example/pid';
      const egress = { host: '127.0.0.1', port: Number(URL.parse(proxy.url)?.port) };
      const inspector = await startInspectorPool({
        ...{
          inspectUrl,
          programs,
          egress,
          root: folder,
          cgroups: null,
          sandbox: 'user',
          plugins: [hostile],
          log: aLog().log,
        },
        ...{ inspectSeconds: 20, maxConcurrent: 1, maxRequests: 100 },
      });
      const { one, other } = await compare(
        () => inspector.inspect(url, '', new AbortController().signal),
        () => runYtDlp('--plugin-dirs', hostile, '-J', url),
        ({ one, other }) => one <= 0.2 * other,
      );
      const result = await inspector.inspect(url, '', new AbortController().signal);
      await inspector.close();
      console.log(`      warm ${one.toFixed(0)} ms, command ${other.toFixed(0)} ms: ${(one / other).toFixed(2)}`);
      expect(result).to.have.property('metadata');
      expect(one / other).to.be.at.most(0.2);
    });

    for (const sandbox of ['user', 'namespace'] as Sandbox[]) {
      it(`the sandbox adds at most 10 ms to a child (sandbox ${sandbox})`, async () => {
        const limits = { fileBytes: 1, folderBytes: 1, memoryBytes: 2 ** 28, cpuSeconds: 9, processes: 9 };
        const readable = programFolders([python]);
        const filter = await laySeccompFilter(join(folder, `seccomp-${sandbox}`), true);
        const inside = {
          sandbox,
          folder: '/var/tmp',
          readable,
          route: null,
          limits,
          filter,
          cgroup: null,
          user: 2_000_000_000,
          python,
        };
        // Bubblewrap tells its first process on descriptor 4.
        const nothing = openSync('/dev/null', 'w');
        const start = ([program = '', ...args]: readonly string[]) =>
          execFileSync(program, args, { stdio: ['ignore', 'ignore', 'ignore', 'ignore', nothing] });
        const { one, other } = await compare(
          () => start(sandboxCommand(['true'], inside)),
          () => start(['true']),
          ({ one, other }) => one - other <= 10,
          // A few milliseconds: what else the machine does only makes both slower.
          (times) => Math.min(...times),
        );
        closeSync(nothing);
        console.log(`      ${(one - other).toFixed(1)} ms`);
        expect(one - other).to.be.at.most(10);
      });
    }

    it('the cgroup of a job of three children adds at most 20 ms to it', async () => {
      const root = join(folder, 'caged');
      const found = findCgroup();
      const place = typeof found === 'string' ? null : await openCgroup(found, root);
      const job = async (isCaged: boolean) => {
        const at = await openTestWorkspace('user', 1, {}, programs.python, root, isCaged ? place?.folder : null);
        const options = { folder: at.folder, env: {}, signal: new AbortController().signal };
        for (let n = 0; n < 3; n++) expect((await at.run('/bin/true', [], options).ended).code).to.equal(0);
        await at.stop();
      };
      const { one, other } = await compare(
        () => job(true),
        () => job(false),
        ({ one, other }) => one - other <= 20,
        (times) => Math.min(...times),
      );
      await place?.close();
      console.log(`      ${(one - other).toFixed(1)} ms`);
      expect(one - other).to.be.at.most(20);
    });

    it('a whole small job takes at most 1.5 times the time of the command', async () => {
      const query = `${source.url}/films/clip.mp4`;
      const args = { query, download_type: 'audio_video', video_quality: 'best', video_format: 'mp4' };
      const gateway = await startGateway({ folder, order: { endpoint: 'video', args } });
      const env = {
        ...{ PATH: process.env.PATH, HOME: process.env.HOME, TRAWL_DATA: folder, TRAWL_SANDBOX: 'required' },
        ...{ TRAWL_GATEWAY_ADDRESS: `unix:${gateway.address.path}`, TRAWL_EGRESS_ADDRESS: proxy.url },
      };
      const job = async () => {
        const worker = spawn(launcher, ['worker'], { env, stdio: ['pipe', 'ignore', 'inherit'] });
        worker.stdin.write(`${token}\n`);
        expect((await once(worker, 'close'))[0]).to.equal(0);
      };
      const { one, other } = await compare(
        job,
        () => runYtDlp('--force-overwrites', '-o', 'film.mp4', query),
        ({ one, other }) => one <= 1.5 * other,
      );
      await gateway.stop();
      console.log(`      job ${one.toFixed(0)} ms, command ${other.toFixed(0)} ms: ${(one / other).toFixed(2)}`);
      expect(one / other).to.be.at.most(1.5);
    });
  });

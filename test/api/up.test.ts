import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createWeb } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { ask } from '../support/egress.ts';
import type { FollowedChild } from '../support/followed-child.ts';
import { freePort } from '../support/free-port.ts';
import { trawl } from '../support/operator.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesIn, processesWith, type RunningUp, spawnUp, startUp } from '../support/up.ts';

/** Settings that are wrong, the first by its name; written so that no list of settings finds it here. */
const wrong = {
  [['TRAWL', 'NONSENSE'].join('_')]: '1',
  TRAWL_WORKERS: 'many',
  TRAWL_ASYNC_STATUS: '201',
  TRAWL_TRUSTED_PROXIES: '10.0.0.0/99',
  TRAWL_OBJECTS: 's3',
};

const inCluster = {
  ...{ TRAWL_RUNNER: 'kubernetes', TRAWL_KUBE_NAMESPACE: 'workers', TRAWL_WORKER_IMAGE: 'worker' },
  ...{ TRAWL_GATEWAY_ADDRESS: 'http://127.0.0.1:9', TRAWL_EGRESS_ADDRESS: 'http://127.0.0.1:9' },
  ...{ TRAWL_OBJECTS: 's3', TRAWL_S3_BUCKET: 'files' },
};

/** A film that no resolver knows: its job ends without a charge. */
const film = 'https://film.invalid/film';

/** An API server that allows everything, has nothing and tells of no change. */
async function startCluster() {
  const server = createWeb((request, response) => {
    if (request.url?.includes('watch=true')) return;
    const empty = { items: [], metadata: { resourceVersion: '1' } };
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ status: { allowed: true }, ...empty }));
  });
  let open = 0;
  server.on('connection', (socket) => {
    open++;
    socket.on('close', () => open--);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, open: () => open, stop };
}

function kubeconfigOf(server: string): string {
  return JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'it', users: [] },
    clusters: [{ name: 'it', cluster: { server, 'insecure-skip-tls-verify': true } }],
    contexts: [{ name: 'it', context: { cluster: 'it', user: '' } }],
  });
}

describe('trawl up', () => {
  let folder: string;
  let remove: () => void;
  let started: FollowedChild[] = [];
  beforeEach(() => {
    ({ folder, remove } = aFolder());
  });
  afterEach(async () => {
    for (const { process, ended } of started) {
      process.kill('SIGKILL');
      await ended;
    }
    started = [];
    await until(() => processesIn(folder).length === 0, 10, 'no process of a test is left');
    remove();
  });

  const data = () => join(folder, 'data');
  const keep = <U extends FollowedChild>(up: U): U => {
    started.push(up);
    return up;
  };
  const start = async (env = {}) => keep(await startUp({ TRAWL_DATA: data(), TRAWL_ATTEMPTS: '1', ...env }));
  const refuse = async (env = {}) => {
    const up = keep(spawnUp({ TRAWL_DATA: data(), ...env }));
    return { code: await up.ended, said: up.output() };
  };
  /** The key that a first start prints. */
  const sampleKey = async (up: FollowedChild) =>
    (await until(() => /^ {2}curl -H 'x-api-key: (\S+)' /m.exec(up.output()), 5, 'the curl line'))![1]!;
  const get = async ({ url }: RunningUp, path: string, key: string) => {
    const answer = await fetch(url + path, { headers: { 'x-api-key': key } });
    return { status: answer.status, json: JSON.parse(await answer.text()) };
  };
  /** Waits for the end of a job whose film nobody can reach here. */
  const endOf = async (up: RunningUp, id: string, key: string) => {
    const hasEnded = async () => (await get(up, `/v1/jobs/${id}`, key)).json.completed_at !== null;
    await until(hasEnded, 60, 'the job ends');
  };
  const accounts = async () => {
    const { out } = await trawl(['admin', 'account', 'list', '--json'], { TRAWL_DATA: data() });
    return JSON.parse(out) as { slug: string }[];
  };
  const stopWith = async ({ process, ended }: FollowedChild, signal: NodeJS.Signals) => {
    const began = performance.now();
    process.kill(signal);
    const code = await ended;
    return { code, seconds: (performance.now() - began) / 1000 };
  };

  it('prints a curl line with a working key at its first start, and makes no other account at the next', async () => {
    const first = await start();
    const key = await sampleKey(first);
    expect(first.output()).to.contain(`\n  curl -H 'x-api-key: ${key}' '${first.url}/v1/usage'\n`);
    const { status, json } = await get(first, '/v1/usage', key);
    expect([status, json.remaining]).to.deep.equal([200, 100]);
    const job = await get(first, `/v1/video/download?query=${film}`, key);
    expect(job.status).to.equal(202);
    expect(await accounts()).to.have.length(1);
    const stopped = await stopWith(first, 'SIGTERM');
    expect(stopped.code).to.equal(0);
    expect(stopped.seconds).to.be.below(20);
    expect(processesIn(folder)).to.deep.equal([]);

    const second = await start();
    expect(second.output()).not.to.match(/curl|x-api-key/);
    expect(await accounts()).to.have.length(1);
    await endOf(second, job.json.job_id, key);
    expect((await get(second, '/v1/usage', key)).json).to.include({ remaining: 100, held: 0 });
    expect(first.output() + second.output()).not.to.match(/"level":"(error|warn)"|\n {4}at /);
  });

  it('tells admin commands that know its data folder alone where links lead to, and again after a restart', async () => {
    for (const _ of ['first', 'second']) {
      const up = await start();
      const line = ['admin', 'user', 'create', '--operator', '--email', 'ada@example.com', '--json'];
      const { out } = await trawl(line, { TRAWL_DATA: data() });
      const dashboard = /^Its dashboard is at (\S+)$/m.exec(up.output())?.[1];
      expect(new URL(JSON.parse(out).sign_in_url).origin).to.equal(dashboard);
      expect((await stopWith(up, 'SIGTERM')).code).to.equal(0);
    }
  });

  it('lets its owner alone read the data folder and the secret', async () => {
    await start();
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
    expect([modeOf(data()), modeOf(join(data(), 'secret'))]).to.deep.equal(['700', '600']);
    for (const inside of ['redis', 'objects']) expect(modeOf(join(data(), inside)), inside).to.equal('700');
  });

  it('is refused with a sentence while another one uses the folder, and the other one goes on', async () => {
    const first = await start();
    const { code, said } = await refuse();
    expect([code, said]).to.deep.equal([1, `Another trawl up runs in ${data()} (TRAWL_DATA)\n`]);
    expect((await fetch(`${first.url}/openapi.json`)).status).to.equal(200);
    expect((await stopWith(first, 'SIGINT')).code).to.equal(0);
    await start();
  });

  for (const name of ['TRAWL_PORT', 'TRAWL_DASHBOARD_PORT', 'TRAWL_PROBE_PORT']) {
    it(`names the taken ${name}, and leaves no process`, async () => {
      const other: Server = createServer().listen(0, '127.0.0.1');
      await new Promise((resolve) => other.once('listening', resolve));
      const { port } = other.address() as AddressInfo;
      const { code, said } = await refuse({ [name]: String(port) });
      await new Promise((resolve) => other.close(resolve));
      expect(code).to.equal(1);
      expect(said)
        .to.match(new RegExp(`^The port ${port} is taken by another program$`, 'm'))
        .and.not.match(/^ +at /m);
      expect(processesIn(folder)).to.deep.equal([]);
      await start();
    });
  }

  it('ends when the gateway for workers in a cluster cannot listen, although it watches the cluster by then', async () => {
    const { url, open, stop } = await startCluster();
    const { port } = new URL(url);
    const kubeconfig = join(folder, 'kubeconfig');
    writeFileSync(kubeconfig, kubeconfigOf(url));
    const own = { KUBECONFIG: kubeconfig, TRAWL_S3_ENDPOINT: url, TRAWL_GATEWAY_PORT: port };
    const { code, said } = await refuse({ ...inCluster, ...own });
    await stop();
    expect([code, open()], said).to.deep.equal([1, 0]);
    expect(said).to.include(`The port ${port} is taken by another program\n`);
  });

  it('leaves no redis-server when it is killed, and its next start finishes the open job', async () => {
    const first = await start();
    const key = await sampleKey(first);
    const job = await get(first, `/v1/video/download?query=${film}`, key);
    // redis-server, and by now perhaps the inspector's and a worker's own.
    expect(processesIn(folder)).not.to.deep.equal([]);
    expect((await stopWith(first, 'SIGKILL')).code).to.equal('SIGKILL');
    await until(() => processesIn(folder).length === 0, 10, 'redis-server ends');
    const second = await start();
    await endOf(second, job.json.job_id, key);
    expect((await get(second, '/v1/usage', key)).json).to.include({ remaining: 100, held: 0 });
  });

  it('D93: starts a killed redis-server again', async () => {
    const up = await start();
    const key = await sampleKey(up);
    const [pid = 0] = processesIn(folder);
    process.kill(pid, 'SIGKILL');
    await until(() => processesIn(folder).some((other) => other !== pid), 10, 'another redis-server');
    await until(async () => (await get(up, '/v1/usage', key)).status === 200, 10, 'an answer');
  });

  it('counts at its probe port the connections of egress, and goes on when egress is started again', async () => {
    const port = await freePort();
    await start({ TRAWL_PROBE_PORT: String(port) });
    const egress = { path: join(data(), 'egress.sock') };
    const refuseOne = async () => (await ask(egress, 'http://127.0.0.3/').catch(() => null))?.verdict;
    const counts = async () => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return text.match(/(?<=^trawl_egress_connections_total\{verdict="(open|refused_address)"\} )\d+$/gm)?.join();
    };
    await until(refuseOne, 10, 'egress serves');
    await until(async () => (await counts()) === '0,1', 5, 'its connection is counted');
    const [pid] = processesWith(egress.path);
    process.kill(pid!, 'SIGKILL');
    await until(() => processesWith(egress.path).some((other) => other !== pid), 10, 'another egress');
    expect(await counts()).to.equal('0,1');
    await until(refuseOne, 10, 'it serves');
    await until(async () => (await counts()) === '0,2', 5, 'both connections are counted');
  });

  it('D88: names all wrong settings at once, and creates nothing', async () => {
    const { code, said } = await refuse(wrong);
    expect(code).to.equal(1);
    for (const name of [...Object.keys(wrong), 'TRAWL_S3_BUCKET']) expect(said).to.contain(name);
    expect(said.trim().split('\n')).to.have.length(Object.keys(wrong).length);
    expect(() => statSync(data())).to.throw('ENOENT');
  });

  it('names all problems of the doctor at once, and creates nothing', async () => {
    const programs = join(folder, 'programs');
    mkdirSync(programs);
    for (const name of ['sh', 'dirname', 'readlink', 'uname', 'mkdir', 'redis-server', 'setpriv']) {
      symlinkSync(execFileSync('which', [name], { encoding: 'utf8' }).trim(), join(programs, name));
    }
    const { code, said } = await refuse({ PATH: programs, TRAWL_SANDBOX: 'required' });
    const own = process.getuid?.() === 0 ? 'landlock-user' : 'landlock';
    expect([code, said.trim().split('\n')]).to.deep.equal([
      1,
      [
        'flock is not installed: trawl up locks its data folder with it.',
        'ffmpeg is not installed: workers convert and check files with it.',
        'ffprobe is not installed: workers prove files with it.',
        `bwrap is not installed: without it, the isolation of children is ${own} (docs/images.md).`,
      ],
    ]);
    expect(existsSync(data())).to.equal(false);
  });

  it('prints the notes of the doctor, and starts', async () => {
    const up = await start({ TRAWL_SANDBOX: 'off' });
    expect(up.output()).to.match(/^Workers run without a sandbox: TRAWL_SANDBOX is off\.$/m);
  });

  it('starts after a crash that left a half-written secret', async () => {
    mkdirSync(data());
    const half = join(data(), `secret.new-${spawnSync('true').pid}`);
    writeFileSync(half, 'half');
    await start();
    expect(Buffer.from(readFileSync(join(data(), 'secret'), 'utf8'), 'base64')).to.have.length(32);
    expect(existsSync(half)).to.equal(false);
  });

  it('is refused with a sentence when its secret is damaged', async () => {
    expect((await stopWith(await start(), 'SIGTERM')).code).to.equal(0);
    writeFileSync(join(data(), 'secret'), 'damaged\n');
    const { code, said } = await refuse();
    expect(code).to.equal(1);
    expect(said)
      .to.match(/secret does not hold 32 bytes in base64/)
      .and.not.match(/^ +at /m);
  });

  it('D89: follows TRAWL_CLOCK_FILE into the next period', async () => {
    const clock = join(folder, 'clock');
    writeFileSync(clock, '0');
    const up = await start({ TRAWL_CLOCK_FILE: clock });
    const key = await sampleKey(up);
    const { period } = (await get(up, '/v1/usage', key)).json;
    writeFileSync(clock, String(32 * 86_400));
    const next = async () => (await get(up, '/v1/usage', key)).json.period.start === period.end;
    await until(next, 5, 'the next period');
  });

  it('prints its usage for --help, and refuses an unknown option with exit code 2', async () => {
    expect(await trawl(['up', '--help'])).to.include({ code: 0, err: '' });
    const { code, err } = await trawl(['up', '--nonsense']);
    expect(code).to.equal(2);
    expect(err)
      .to.match(/'--nonsense'/)
      .and.match(/Usage: trawl up/);
  });
});

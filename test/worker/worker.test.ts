import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readDetail, readVerdict } from '../../src/model/outcome.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../support/gateway.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesOf, startWorker, type TestWorker, type TestWorkerOptions } from '../support/worker.ts';

type Options = Partial<Omit<TestGatewayOptions, 'folder' | 'order'> & TestWorkerOptions>;

const film = 'head -c 300000 /dev/zero > media.mp4';

describe('A worker', () => {
  /** Starts a worker whose children carry out a script. */
  async function withWorker(
    script: string,
    look: (started: { worker: TestWorker; gateway: TestGateway; folder: string }) => Promise<void>,
    { limits, partBytes, ...options }: Options = {},
    prepare: (gateway: TestGateway) => void = () => undefined,
  ): Promise<void> {
    const { folder, remove } = aFolder();
    const order = { endpoint: 'video' as const, args: { query: 'http://site.example/film', script } };
    const gateway = await startGateway({ folder, order, ...(limits && { limits }), ...(partBytes && { partBytes }) });
    prepare(gateway);
    const worker = startWorker({ folder, gateway: gateway.address, egress: 'http://127.0.0.1:9', ...options });
    try {
      await look({ worker, gateway, folder });
      expect(existsSync(join(folder, 'work')) ? readdirSync(join(folder, 'work')) : []).to.deep.equal([]);
      await until(() => processesOf(join(folder, 'work')).length === 0, 5, 'no process is left');
    } finally {
      worker.process.kill('SIGKILL');
      await worker.exit;
      await gateway.stop();
      remove();
    }
  }

  for (const sandbox of ['required', 'off'] as const) {
    it(`makes a file, uploads it and sends the verdict (sandbox ${sandbox})`, () =>
      withWorker(
        film,
        async ({ worker, gateway }) => {
          expect(await worker.exit, worker.stderr()).to.deep.equal({ code: 0, signal: null });
          const stored = gateway.objects.get('object');
          expect(stored).to.include({ bytes: 300_000, type: 'video/mp4' });
          expect(gateway.verdicts).to.have.lengthOf(1);
          const outcome = readVerdict(gateway.verdicts[0]);
          const delivered = {
            key: 'a-job/1/media.mp4',
            bytes: 300_000,
            sha256: stored?.sha256,
            content_type: 'video/mp4',
          };
          expect(outcome).to.deep.include({ is: 'done', delivered });
        },
        { sandbox },
      ));
  }

  it('uploads each part that the permit names', () =>
    withWorker(
      film,
      async ({ worker, gateway }) => {
        expect(await worker.exit, worker.stderr()).to.deep.equal({ code: 0, signal: null });
        const sizes = [0, 1, 2].map((part) => gateway.objects.get(`/parts/${part}`)?.bytes);
        expect(sizes).to.deep.equal([128_000, 128_000, 44_000]);
        expect(gateway.calls.filter((call) => call.startsWith('PUT /parts/'))).to.have.lengthOf(3);
      },
      { partBytes: 128_000 },
    ));

  it('uploads a failed part again, and no other part', () =>
    withWorker(
      film,
      async ({ worker, gateway }) => {
        expect(await worker.exit, worker.stderr()).to.deep.equal({ code: 0, signal: null });
        const puts = gateway.calls.filter((call) => call.startsWith('PUT /parts/')).sort();
        expect(puts).to.deep.equal([0, 1, 1, 1, 2].map((part) => `PUT /parts/${part}`));
        expect(gateway.objects.size).to.equal(3);
      },
      { partBytes: 128_000 },
      (gateway) => gateway.refuse('/parts/1', 500, 503),
    ));

  it('retries while gateway and store fail, with a new permit for each try', () =>
    withWorker(
      film,
      async ({ worker, gateway }) => {
        expect(await worker.exit, worker.stderr()).to.deep.equal({ code: 0, signal: null });
        expect(gateway.calls.filter((call) => call === 'POST /v1/attempt/permit')).to.have.lengthOf(4);
        expect(gateway.verdicts.map(({ is }) => is)).to.deep.equal(['done']);
      },
      {},
      (gateway) => {
        gateway.refuse('/v1/attempt', 503, 500);
        gateway.refuse('/v1/attempt/permit', 502);
        gateway.refuse('/v1/attempt/object', 503, 503);
        gateway.refuse('/v1/attempt/verdict', 500, 429);
      },
    ));

  it('waits for egress that is away, and tells so when its time is up', () =>
    withWorker(
      '',
      async ({ worker, gateway }) => {
        expect(await worker.exit, worker.stderr()).to.deep.equal({ code: 75, signal: null });
        const text = 'This service had no way to the Internet for as long as the job could wait';
        expect(gateway.verdicts[0]).to.include({ is: 'failed', code: 'timeout', text });
        expect(worker.stderr()).to.contain('the attempt waits for egress');
      },
      { media: 'real', limits: { seconds: 20 } },
    ));

  const ends: readonly {
    readonly title: string;
    readonly script: string;
    readonly limits?: { file_bytes?: number; seconds?: number };
    readonly code: string;
    readonly exit: number;
  }[] = [
    { title: 'fails', script: 'echo wrong >&2; exit 3', code: 'unclassified', exit: 75 },
    { title: 'takes too long', script: 'sleep 60', limits: { seconds: 1 }, code: 'timeout', exit: 75 },
    {
      title: 'fills the disk',
      script: 'n=0; while true; do n=$((n+1)); head -c 900000 /dev/zero > $n; sleep 0.02; done',
      limits: { file_bytes: 1_000_000 },
      code: 'file_too_large',
      exit: 64,
    },
    { title: 'names a link for its file', script: 'ln -s /etc/hostname media.mp4', code: 'worker_failed', exit: 75 },
  ];
  for (const { title, script, limits, code, exit } of ends) {
    it(`exits with the code of its outcome when its child ${title}`, () =>
      withWorker(
        script,
        async ({ worker, gateway }) => {
          expect(await worker.exit, worker.stderr()).to.deep.equal({ code: exit, signal: null });
          expect(gateway.verdicts.map(({ is, code }) => `${is} ${code}`)).to.deep.equal([`failed ${code}`]);
          expect(gateway.objects.size).to.equal(0);
        },
        limits ? { limits } : {},
      ));
  }

  it('exits without a verdict when the job is over', () =>
    withWorker(
      'sleep 60',
      async ({ worker, gateway }) => {
        expect(await worker.exit, worker.stderr()).to.deep.equal({ code: 143, signal: null });
        expect(gateway.verdicts).to.deep.equal([]);
      },
      {},
      (gateway) => gateway.refuse('/v1/attempt/progress', 410),
    ));

  it('exits without a verdict when the gateway refuses its token', () =>
    withWorker(
      film,
      async ({ worker }) => {
        expect((await worker.exit).code, worker.stderr()).to.equal(75);
      },
      {},
      (gateway) => gateway.refuse('/v1/attempt', 401),
    ));

  const leavings: readonly [string, (worker: TestWorker) => void][] = [
    ['it is told to stop', ({ process }) => process.kill('SIGTERM')],
    ['the one that started it is gone', ({ process }) => process.stdin.destroy()],
  ];
  for (const [title, leave] of leavings) {
    it(`sends the verdict interrupted when ${title}`, () =>
      withWorker('sleep 60', async ({ worker, gateway, folder }) => {
        await until(() => processesOf(join(folder, 'work')).length > 2, 10, 'the child runs');
        leave(worker);
        expect(await worker.exit, worker.stderr()).to.deep.equal({ code: 143, signal: null });
        expect(gateway.verdicts.map(({ is }) => is)).to.deep.equal(['interrupted']);
      }));
  }

  for (const sandbox of ['required', 'off'] as const) {
    const deaf = `trap '' TERM INT HUP; (while true; do sleep 1; done) & ${film}`;
    it(`kills a child that ignores signals when the job ends (sandbox ${sandbox})`, () =>
      withWorker(
        deaf,
        async ({ worker }) => {
          expect((await worker.exit).code, worker.stderr()).to.equal(0);
        },
        { sandbox },
      ));

    it(`kills a child that ignores signals when the worker gets SIGTERM (sandbox ${sandbox})`, () =>
      withWorker(
        `${deaf}; wait`,
        async ({ worker, folder }) => {
          await until(() => processesOf(join(folder, 'work')).some((line) => line.includes('sleep 1')), 10, 'it runs');
          worker.process.kill('SIGTERM');
          expect((await worker.exit).code, worker.stderr()).to.equal(143);
        },
        { sandbox },
      ));
  }

  it('writes its outcome into the termination file in at most 4 KB', async () => {
    const { folder, remove } = aFolder();
    const terminationFile = join(folder, 'end');
    await withWorker(
      film,
      async ({ worker }) => {
        await worker.exit;
        const said = readFileSync(terminationFile);
        expect(said.length).to.be.at.most(4096);
        expect(readVerdict(JSON.parse(said.toString()))?.is).to.equal('done');
      },
      { terminationFile },
    );
    remove();
  });

  it('tells the gateway what the program said of a failure of ours', () =>
    withWorker('echo no such codec >&2; exit 1', async ({ worker, gateway }) => {
      await worker.exit;
      expect(gateway.verdicts[0]).to.include({ is: 'failed', code: 'unclassified' });
      expect(readDetail(gateway.verdicts[0])).to.include('no such codec');
    }));

  it('tells the gateway no path of a URL, where that is cut in the middle', () => {
    const say = "printf 'https://media.example/%03000d?token=secret no such codec' 0 >&2; exit 1";
    return withWorker(say, async ({ worker, gateway }) => {
      await worker.exit;
      expect(gateway.verdicts[0]).to.have.property('detail').that.includes('no such codec').and.not.includes('secret');
    });
  });

  it('shows its token neither to a child nor in its log', () =>
    withWorker(
      'env; cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr "\\0" " " >&2; exit 1',
      async ({ worker }) => {
        await worker.exit;
        expect(worker.stderr()).to.include('attempt failed').and.not.include('token-of-this-attempt');
      },
    ));
});

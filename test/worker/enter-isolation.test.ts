import { expect } from 'chai';
import { layCappedPython } from '../support/capped-python.ts';
import { startGateway } from '../support/gateway.ts';
import { aFolder } from '../support/redis.ts';
import { startWorker, type TestWorkerOptions } from '../support/worker.ts';

describe('The isolation of a worker', () => {
  /** Runs a worker whose kernel has this version of Landlock. */
  async function workWith(landlock: number, options: Pick<TestWorkerOptions, 'isPod' | 'network' | 'sandbox'>) {
    const { folder, remove } = aFolder();
    const script = 'head -c 300000 /dev/zero > media.mp4';
    const order = { endpoint: 'video' as const, args: { query: 'http://site.example/film', script } };
    const gateway = await startGateway({ folder, order });
    const python = layCappedPython(folder, landlock);
    const address = { gateway: gateway.address, egress: 'http://127.0.0.1:9' };
    const worker = startWorker({ folder, ...address, python, sandbox: 'off', ...options });
    try {
      const { code } = await worker.exit;
      const line = worker
        .stderr()
        .split('\n')
        .find((text) => text.includes('isolation of children'));
      const { isolation, landlock } = JSON.parse(line ?? '{}') as { isolation?: string; landlock?: number };
      return { code, isolation, landlock, verdicts: gateway.verdicts.length, said: worker.stderr() };
    } finally {
      await gateway.stop();
      remove();
    }
  }

  it('refuses to start in a pod whose kernel cannot bar TCP connections', async () => {
    const { said, ...end } = await workWith(3, { isPod: true });
    expect(end).to.deep.equal({ code: 1, isolation: undefined, landlock: undefined, verdicts: 0 });
    expect(said)
      .to.include('The kernel has version 3 of Landlock')
      .and.include('TRAWL_WORKER_NETWORK=policies-enforced');
  });

  for (const [landlock, options, isolation] of [
    [3, { isPod: true, network: 'policies-enforced' }, 'pod'],
    [4, { isPod: true }, 'pod'],
    [3, {}, 'landlock'],
    [0, {}, 'none'],
    [3, { sandbox: 'required' }, 'bwrap-'],
  ] as const) {
    const title = `${Object.entries(options).join(' ').replaceAll(',', ' ') || 'no pod and no sandbox'}`;
    it(`starts and logs ${isolation} with Landlock ${landlock} and ${title}`, async () => {
      const { said, ...end } = await workWith(landlock, options);
      expect(end.isolation, said).to.match(new RegExp(`^${isolation}`));
      expect(end).to.include({ code: 0, landlock, verdicts: 1 });
    });
  }
});

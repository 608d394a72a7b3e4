import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { openGatewayClient, repeat } from '../../src/worker/gateway-client.ts';
import { type MediaActions, runAttempt } from '../../src/worker/run-attempt.ts';
import type { Sandbox } from '../../src/worker/sandbox-command.ts';
import { startStageClock } from '../../src/worker/stage-clock.ts';
import { startGateway, type TestGateway, token } from '../support/gateway.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesOf, programs, scripted } from '../support/worker.ts';
import { sandboxes } from '../support/workspace.ts';

describe('An attempt', () => {
  /** Runs a script as an attempt in this process, with little memory and patience. */
  async function attempt(
    script: string,
    sandbox: Sandbox,
    look: (gateway: TestGateway) => void = () => undefined,
    media: MediaActions = scripted,
  ) {
    const { folder, remove } = aFolder();
    const order = { endpoint: 'video' as const, args: { query: 'http://a.example/', script } };
    const server = await startGateway({ folder, order, limits: { seconds: 3_600 } });
    const { signal } = new AbortController();
    const gateway = openGatewayClient(server.address, () => token, 1, signal);
    const root = join(folder, 'work');
    mkdirSync(root);
    const attempt = runAttempt({
      ...{ gateway, media, programs, root, cgroups: null, sandbox, plugins: [], log: aLog().log, signal },
      ...{ egress: { host: '127.0.0.1', port: 9 }, memoryBytes: 2 ** 28, slowBytes: 1, slowSeconds: 60 },
      patienceSeconds: 1,
      stages: startStageClock(),
    });
    look(server);
    const outcome = await attempt;
    expect(readdirSync(root)).to.deep.equal([]);
    await until(() => processesOf(root).length === 0, 2, 'no process is left');
    await server.stop();
    remove();
    return outcome;
  }

  it('is interrupted and leaves no process and no file when its gateway stays away', async () => {
    const leave = (gateway: TestGateway) => setTimeout(() => void gateway.stop(), 1000);
    const outcome = await attempt('sleep 60', 'none', leave);
    expect(outcome).to.deep.equal({ is: 'interrupted', reason: 'The gateway could not be reached' });
  });

  it('is interrupted, and no failure of the worker, when its gateway gives it no order', async () => {
    const refuse = ({ refuse }: TestGateway) => refuse('/v1/attempt', ...Array.from({ length: 100 }, () => 503));
    const outcome = await attempt('exit 0', 'none', refuse);
    expect(outcome).to.deep.equal({ is: 'interrupted', reason: 'The gateway could not be reached' });
  });

  it('waits with what it recorded for a store that is away for longer than its patience, and with nothing else', async () => {
    // The delays between these tries are longer than its patience.
    const refuse = ({ refuse }: TestGateway) => refuse('/v1/attempt/permit', 503, 503, 503, 503, 503);
    const film = 'echo film > media.mp4';
    expect(await attempt(film, 'none', refuse)).to.include({ is: 'failed', code: 'storage_unavailable' });
    const produce: MediaActions['produce'] = (order, tools, told, signal) => {
      told({ progress: 50, stage: 'record', speed_bytes: null, eta_seconds: null });
      return scripted.produce(order, tools, told, signal);
    };
    const outcome = await attempt(film, 'none', refuse, { ...scripted, produce });
    expect(outcome).to.deep.include({ is: 'done' }).and.have.nested.property('delivered.bytes', 5);
  });

  it('gives up what it recorded at its end, although a part of it was stored later', async () => {
    let tries = 0;
    const untilMs = performance.now() + 1000;
    const store = async (renew: () => void) => {
      tries += 1;
      await until(() => performance.now() > untilMs, 5, 'its end');
      if (tries === 1) renew();
      throw new Error('the store is away');
    };
    const error = await repeat(store, 0, new AbortController().signal, untilMs).catch((error) => error);
    expect([error.message, tries]).to.deep.equal(['the store is away', 1]);
  });

  for (const sandbox of sandboxes) {
    it(`fails when its children together exceed the memory limit (sandbox ${sandbox})`, async () => {
      // Each of them keeps a line without an end, and stays below the limit of one process.
      const hogs = 'for hog in 1 2 3 4; do (head -c 120M /dev/zero; sleep 60) | tail & done; wait';
      expect(await attempt(hogs, sandbox)).to.deep.equal({ is: 'failed', code: 'file_damaged' });
    });
  }
});

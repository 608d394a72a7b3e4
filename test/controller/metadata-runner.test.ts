import { createServer, type RequestListener, type Server } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { refuse } from '../../src/base/errors.ts';
import { openMetadataRunner } from '../../src/controller/metadata-runner.ts';
import type { Job } from '../../src/model/job.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import { askInspector } from '../../src/roles/inspector-client.ts';
import { aJob, someMetadata } from '../support/jobs.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const attempt = {
  name: 'a-1',
  jobId: 'a',
  attempt: 1,
  endpoint: 'metadata',
  maxMs: Number.MAX_SAFE_INTEGER,
} as const;
const done: RequestListener = (_, res) => res.end(JSON.stringify({ metadata: someMetadata }));

describe('metadata jobs', () => {
  let folder: string;
  let remove: () => void;
  let server: Server | undefined;
  beforeEach(() => {
    ({ folder, remove } = aFolder());
  });
  afterEach(async () => {
    server?.closeAllConnections();
    await new Promise((resolve) => (server ? server.close(resolve) : resolve(null)));
    server = undefined;
    remove();
  });

  const socketPath = () => join(folder, 'inspector.sock');
  const serve = async (...listeners: RequestListener[]) => {
    let calls = 0;
    server = createServer((req, res) => listeners[Math.min(calls++, listeners.length - 1)]?.(req, res));
    await new Promise<void>((resolve) => server?.listen(socketPath(), resolve));
  };
  const start = async (readJob: () => Promise<Job | null> = async () => aJob({ attempt: 1 }), seconds = 8) => {
    const { log } = aLog();
    const runner = openMetadataRunner(askInspector({ path: socketPath() }), readJob, seconds, log);
    await runner.start(attempt);
    const outcome = (): Promise<Outcome> =>
      until(
        async () => {
          const seen = await runner.see(attempt.name);
          return seen.is === 'ended' ? seen.outcome : null;
        },
        9,
        'the attempt ends',
      ) as Promise<Outcome>;
    return { runner, outcome };
  };

  it('D74: a job waits for an inspector that restarts, without counting a failure', async () => {
    const { runner, outcome } = await start();
    expect(await runner.see(attempt.name)).to.deep.equal({ is: 'running' });
    await serve(done);
    expect(await outcome()).to.include({ is: 'done' });
  });

  it('D74: an inspector that is killed during a request interrupts the attempt', async () => {
    await serve((req) => req.socket.destroy());
    expect(await (await start()).outcome()).to.deep.equal({ is: 'interrupted', reason: 'the inspector ended' });
  });

  for (const status of [429, 503]) {
    it(`an inspector without a free slot for the account is asked again after its ${status}`, async () => {
      await serve((_, res) => res.writeHead(status).end('{}'), done);
      expect(await (await start()).outcome()).to.include({ is: 'done' });
    });
  }

  it('an inspector that does not answer lets the attempt fail at its limit', async () => {
    await serve(() => {});
    expect(await (await start(undefined, 0.5)).outcome()).to.deep.equal({ is: 'failed', code: 'timeout' });
  });

  it('an attempt waits longer than the limit of one answer for a free slot of the inspector', async () => {
    const began = performance.now();
    await serve((req, res) => (performance.now() - began < 1_500 ? res.writeHead(429).end('{}') : done(req, res)));
    const { runner, outcome } = await start(undefined, 0.5);
    await until(async () => (await runner.see(attempt.name)).is === 'waiting', 9, 'the attempt waits');
    expect(await outcome()).to.include({ is: 'done' });
  });

  it('an attempt that another controller has counted meanwhile asks the inspector no more', async () => {
    let job = aJob({ attempt: 1 });
    const { outcome } = await start(async () => job);
    job = aJob({ attempt: 2 });
    expect(await outcome()).to.deep.equal({ is: 'interrupted', reason: 'the attempt is over' });
  });

  it('a record that is away for a moment ends neither the attempt nor the process', async () => {
    await serve(done);
    let reads = 0;
    const readJob = async () => {
      reads += 1;
      if (reads === 1) throw refuse('unavailable');
      return aJob({ attempt: 1 });
    };
    expect(await (await start(readJob)).outcome()).to.include({ is: 'done' });
  });
});

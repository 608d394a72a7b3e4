import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Seen } from '../../src/model/next.ts';
import { type AttemptToRun, attemptNameOf, type Runner } from '../../src/runners/runner.ts';
import { until } from '../support/until.ts';

/** A runner and what a test needs to play its workers. */
export interface RunnerUnderTest {
  readonly runner: Runner;
  /** Lets the worker of an attempt, which runs, end with this exit code. */
  end(name: string, code: number): Promise<void>;
  /** Kills it. */
  kill(name: string): Promise<void>;
  /** Number of workers of an attempt that exist, running or ended. */
  count(name: string): Promise<number>;
}

const failed: Seen = { is: 'ended', outcome: { is: 'failed', code: 'worker_failed' } };
const patience = 20;

/** The contract of every runner. */
export function itRunsAttempts(open: () => RunnerUnderTest): void {
  const anAttempt = (): AttemptToRun => {
    const jobId = randomUUID();
    return { name: attemptNameOf(jobId, 1), jobId, attempt: 1, maxMs: 600_000 };
  };
  const seen = (name: string, is: Seen['is']) =>
    until(
      async () => {
        const found = await open().runner.see(name);
        return found.is === is && found;
      },
      patience,
      `${name} is ${is}`,
    );
  const started = async () => {
    const attempt = anAttempt();
    await open().runner.start(attempt);
    await seen(attempt.name, 'running');
    await until(async () => (await open().count(attempt.name)) === 1, patience, 'its worker is there');
    return attempt;
  };

  it('reports an attempt that was never started as absent, and stopping it changes nothing', async () => {
    const { runner } = open();
    const { name, jobId } = anAttempt();
    expect(await runner.see(name)).to.deep.equal({ is: 'absent' });
    await runner.stop(name);
    expect(await runner.list(jobId)).to.deep.equal([]);
  });

  it('lists an attempt from its start on, and reports that it runs', async () => {
    const { runner } = open();
    const attempt = anAttempt();
    await runner.start(attempt);
    expect((await runner.see(attempt.name)).is).to.be.oneOf(['waiting', 'running']);
    await seen(attempt.name, 'running');
    expect(await runner.list(attempt.jobId)).to.deep.equal([attempt.name]);
    expect(await runner.list()).to.include(attempt.name);
    expect(await runner.list(randomUUID())).to.deep.equal([]);
    await runner.stop(attempt.name);
  });

  it('starts no second worker when an attempt is started again', async () => {
    const { runner, count } = open();
    const attempt = await started();
    await Promise.all([runner.start(attempt), runner.start(attempt)]);
    expect(await count(attempt.name)).to.equal(1);
    expect(await runner.see(attempt.name)).to.deep.equal({ is: 'running' });
    await runner.stop(attempt.name);
  });

  it('keeps the end of an attempt until the attempt is stopped', async () => {
    const { runner, end } = open();
    const { name } = await started();
    await end(name, 64);
    expect(await seen(name, 'ended')).to.deep.equal(failed);
    expect(await runner.see(name)).to.deep.equal(failed);
    expect(await runner.list()).to.include(name);
    await runner.stop(name);
    expect(await runner.list()).not.to.include(name);
  });

  it('judges a worker without a verdict by its exit code', async () => {
    const { runner, end } = open();
    for (const code of [0, 1, 64, 75]) {
      const { name } = await started();
      await end(name, code);
      expect(await seen(name, 'ended'), `exit code ${code}`).to.deep.equal(failed);
      await runner.stop(name);
    }
  });

  it('reports a worker that was killed or got SIGTERM as interrupted', async () => {
    const { runner, end, kill } = open();
    const [killed, told] = [await started(), await started()];
    await kill(killed.name);
    await end(told.name, 143);
    for (const { name } of [killed, told]) {
      const { outcome } = (await seen(name, 'ended')) as Seen & { is: 'ended' };
      expect(outcome.is).to.equal('interrupted');
      await runner.stop(name);
    }
  });

  it('ends a running worker and leaves nothing, even when it is stopped twice', async () => {
    const { runner, count } = open();
    const { name } = await started();
    await Promise.all([runner.stop(name), runner.stop(name)]);
    await until(async () => (await count(name)) === 0, patience, 'nothing is left');
    await runner.stop(name);
    expect(await runner.see(name)).to.deep.equal({ is: 'absent' });
  });

  it('leaves nothing of an ended worker that is stopped', async () => {
    const { runner, end, count } = open();
    const { name } = await started();
    await end(name, 0);
    await seen(name, 'ended');
    await runner.stop(name);
    await until(async () => (await count(name)) === 0, patience, 'nothing is left');
  });

  it('notifies listeners of the end of a worker, but not those that unsubscribed', async () => {
    const { runner, end } = open();
    const { name } = await started();
    const told: string[] = [];
    const left: string[] = [];
    const unwatch = runner.watch((changed) => told.push(changed));
    runner.watch((changed) => left.push(changed))();
    await end(name, 0);
    await until(
      async () => told.includes(name) && (await runner.see(name)).is === 'ended',
      patience,
      'the end is told',
    );
    unwatch();
    expect(left).to.deep.equal([]);
    await runner.stop(name);
  });
}

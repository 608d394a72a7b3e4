import { join } from 'node:path';
import { expect } from 'chai';
import { endStuckSandboxes } from '../../src/worker/orphan-cleaner.ts';
import { aFolder } from '../support/redis.ts';
import { commandOf, signal } from '../support/service.ts';
import { leaveStuckSandbox } from '../support/stuck-sandbox.ts';

describe('A bubblewrap that was killed before it let its child go', () => {
  it('leaves a child that is ended by its folder, unlike that of another folder', async () => {
    const { folder, remove } = aFolder();
    const [work, other] = [join(folder, 'work'), join(folder, 'work-of-another')];
    const ids = [await leaveStuckSandbox(work), await leaveStuckSandbox(join(work, 'job-1', 'job'))];
    const another = await leaveStuckSandbox(other);
    // One that has ended and was not yet reaped has no command line.
    const runs = (id: number) => commandOf(id) !== '';
    expect([...ids, another].map(runs)).to.deep.equal([true, true, true]);
    await endStuckSandboxes(work);
    const left = [...ids, another].map(runs);
    signal(another, 'SIGKILL');
    remove();
    expect(left).to.deep.equal([false, false, true]);
  });
});

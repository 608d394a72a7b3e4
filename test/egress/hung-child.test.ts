import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { codeOf } from '../../src/base/errors.ts';
import { isListening } from '../../src/base/reach-server.ts';
import type { SocketAddress } from '../../src/base/server-address.ts';
import { childEnv, keepChild } from '../../src/roles/children.ts';
import { watchAnswers } from '../../src/roles/silent-child.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('a child of trawl up that hangs', () => {
  /** Starts egress, freezes it, waits for the next one and returns the lines of the log. */
  const freezeEgress = async (afterFreeze: (answersAt: SocketAddress) => Promise<void>) => {
    const { folder, remove } = aFolder();
    const { lines, log } = aLog();
    const [path, answersAt] = [join(folder, 'egress.sock'), { path: join(folder, 'probe.sock') }];
    const args = ['--at', path, '--probe', answersAt.path];
    const pids: (number | undefined)[] = [];
    const end = keepChild({
      ...{ role: 'egress', args, env: childEnv(process.env, folder), log, answersAt },
      onStart: (pid) => void pids.push(pid),
      // Long enough for a child that runs on a busy machine.
      patience: { askMs: 1_000, maxUnanswered: 6 },
    });
    try {
      await until(() => isListening({ path }), 60, 'egress listens');
      await freezeProcess(pids[0]!);
      await afterFreeze(answersAt);
      await until(() => pids.length === 2, 30, 'a second start');
      await until(() => isListening({ path }), 60, 'egress listens again');
    } finally {
      await end();
      remove();
    }
    return lines.map((line) => JSON.parse(line));
  };

  it('is killed and started again after some questions without an answer, and one line of the log says so', async () => {
    const told = await freezeEgress(async () => {});
    expect(told.map(({ text, child, signal, hung }) => [text, child, signal, hung])).to.deep.equal([
      ['a child process ended: it is started again', 'egress', 'SIGKILL', true],
    ]);
  });

  it('is killed also while so many callers wait for it that the system takes no more of them', async () => {
    const callers: Socket[] = [];
    const told = await freezeEgress(async (answersAt) => {
      for (let code = ''; code === ''; ) {
        const caller = createConnection(answersAt);
        callers.push(caller);
        code = await once(caller, 'connect').then(() => '', codeOf);
        caller.on('error', () => {});
      }
    }).finally(() => {
      for (const caller of callers) caller.destroy();
    });
    expect(told.map(({ hung }) => hung)).to.deep.equal([true]);
  });

  it('is told from one that is slow, which answers one question of six', async () => {
    const isUnanswered = [true, true, true, true, true, false, true, true, true, true, true, true];
    let asked = 0;
    const hung = Promise.withResolvers<number>();
    const ask = async () => isUnanswered[asked++] ?? true;
    const watch = watchAnswers(ask, { askMs: 1, maxUnanswered: 6 }, () => hung.resolve(asked));
    expect(await hung.promise).to.equal(isUnanswered.length);
    await watch.close();
  });
});

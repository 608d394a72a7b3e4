import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { makeAccountTurns } from '../../src/api/account-turns.ts';
import { Refusal } from '../../src/base/errors.ts';

const [maxReading, maxWaiting] = [4, 500];

describe('the turns of an account', () => {
  /** Calls in the order of their asking, and the numbers of those whose work has begun. */
  const start = () => {
    const takeTurn = makeAccountTurns();
    const begun: number[] = [];
    const calls: { readonly ended: Promise<unknown>; readonly end: () => void; readonly leave: () => void }[] = [];
    const ask = (accountId: string) => {
      const number = calls.length;
      const res = new ServerResponse(new IncomingMessage(new Socket()));
      const work = Promise.withResolvers<string>();
      const ended = takeTurn({ key: { accountId }, res } as Parameters<typeof takeTurn>[0], () => {
        begun.push(number);
        return work.promise;
      });
      calls.push({ ended, end: () => work.resolve(`answer ${number}`), leave: () => res.destroy() });
      return ended;
    };
    const askTimes = (count: number, accountId: string) => Array.from({ length: count }, () => ask(accountId));
    return { calls, begun, ask, askTimes };
  };

  it('are four at once, and the others in their order, each when one before it has ended', async () => {
    const { calls, begun, askTimes } = start();
    const answers = askTimes(7, 'acme');
    expect(begun).to.deep.equal([0, 1, 2, 3]);
    for (const ends of [2, 0, 4]) {
      calls[ends]!.end();
      await calls[ends]!.ended;
      await turn();
    }
    expect(begun).to.deep.equal([0, 1, 2, 3, 4, 5, 6]);
    for (const call of calls) call.end();
    expect(await Promise.all(answers)).to.deep.equal(calls.map((_, n) => `answer ${n}`));
  });

  it('do not wait for those of another account', () => {
    const { begun, askTimes } = start();
    askTimes(maxReading + 3, 'acme');
    askTimes(maxReading, 'other');
    expect(begun).to.deep.equal([0, 1, 2, 3, 7, 8, 9, 10]);
  });

  it('are free again after work that ended or failed, however many there were', async () => {
    const { calls, begun, askTimes } = start();
    for (let round = 0; round < 3; round++) {
      const answers = askTimes(maxReading + 2, 'acme');
      for (const call of calls) call.end();
      await Promise.all(answers);
    }
    expect(begun).to.have.length(3 * (maxReading + 2));
    askTimes(maxReading + 1, 'acme');
    expect(begun, 'four at once again').to.have.length(3 * (maxReading + 2) + maxReading);
  });

  it('pass by a caller that has left meanwhile', async () => {
    const { calls, begun, askTimes } = start();
    askTimes(maxReading + 2, 'acme');
    calls[4]!.leave();
    calls[0]!.end();
    expect(await calls[4]!.ended).to.equal(null);
    await turn();
    expect(begun).to.deep.equal([0, 1, 2, 3, 5]);
  });

  it(`are refused for a time behind ${maxWaiting} that wait, and only then`, async () => {
    const { calls, ask, askTimes } = start();
    const answers = askTimes(maxReading + maxWaiting, 'acme');
    const refusal = await ask('acme').then(
      () => null,
      (error: unknown) => error,
    );
    expect(refusal).to.be.instanceOf(Refusal).and.to.deep.include({ code: 'rate_limited', retryAfter: 1 });
    for (const call of calls) call.end();
    expect(await Promise.all(answers)).to.have.length(maxReading + maxWaiting);
  });

  it('leave half of the places that are free to a second account', async () => {
    const { calls, ask, askTimes } = start();
    const answers = [...askTimes(maxReading + maxWaiting, 'acme'), ...askTimes(maxReading + maxWaiting / 2, 'other')];
    const refused = await Promise.allSettled([ask('acme'), ask('other')]);
    expect(refused.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    for (const call of calls) call.end();
    expect(await Promise.all(answers)).to.have.length(2 * maxReading + 1.5 * maxWaiting);
    const again = askTimes(maxReading + maxWaiting, 'other');
    for (const call of calls) call.end();
    expect(await Promise.all(again), 'places that are free again').to.have.length(maxReading + maxWaiting);
  });
});

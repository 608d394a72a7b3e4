import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { makeAccountTurns, type TakeTurn } from '../../src/api/account-turns.ts';
import type { Refusal } from '../../src/base/errors.ts';
import { until } from '../support/until.ts';

const maxReading = 4;
const maxWaiting = 500;

/** A call of an account whose caller stays. */
function by(accountId: string): Parameters<TakeTurn>[0] {
  const socket = Object.assign(new EventEmitter(), { writable: true, writableLength: 0, write: () => true });
  const res = Object.assign(new EventEmitter(), { req: { socket, httpVersion: '1.1' } });
  return { key: { accountId, keyId: '', hash: '' }, res: res as unknown as ServerResponse };
}

describe('the works of an account', () => {
  it(`are begun ${maxReading} at once, the others in their order, and beside those of other accounts`, async () => {
    const takeTurn = makeAccountTurns();
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    const ask = (account: string, name: string) =>
      takeTurn(by(account), () => {
        begun.push(name);
        return new Promise<void>((resolve) => ends.push(resolve));
      });
    const all = ['1', '2', '3', '4', '5', '6'].map((name) => ask('a', name));
    all.push(ask('b', 'other'));
    expect(begun).to.deep.equal(['1', '2', '3', '4', 'other']);
    for (const name of ['5', '6']) {
      ends.shift()?.();
      await until(() => begun.includes(name), 10, 'the next one is begun');
      expect(begun.at(-1)).to.equal(name);
    }
    for (const end of ends) end();
    await Promise.all(all);
  });

  it('go on after one that fails', async () => {
    const takeTurn = makeAccountTurns();
    const fails = Array.from({ length: 20 }, () => takeTurn(by('a'), () => Promise.reject(new Error('no'))));
    const settled = await Promise.allSettled(fails);
    expect(settled.filter(({ status }) => status === 'rejected')).to.have.length(20);
    expect(await takeTurn(by('a'), async () => 'yes')).to.equal('yes');
  });

  it('are not begun for a caller that has left before its turn', async () => {
    const takeTurn = makeAccountTurns();
    const gate = Promise.withResolvers<void>();
    const first = Array.from({ length: maxReading }, () => takeTurn(by('a'), () => gate.promise));
    const left = by('a');
    let isAsked = false;
    left.res.writeContinue = () => (isAsked = true);
    const begun = takeTurn(left, async () => 'begun');
    left.res.req.socket.emit('end');
    expect(isAsked, 'asked whether it has left').to.equal(true);
    Object.assign(left.res, { destroyed: true }).emit('close');
    expect(await begun, 'while the others are at work').to.equal(null);
    gate.resolve();
    await Promise.all(first);
  });

  it(`are ${maxReading} at once, too, after callers have left before their turn`, async () => {
    const takeTurn = makeAccountTurns();
    const first = Promise.withResolvers<void>();
    const works = Array.from({ length: maxReading }, () => takeTurn(by('a'), () => first.promise));
    const left = [by('a'), by('a')];
    const ends = left.map((call) => takeTurn(call, async () => 'begun'));
    for (const { res } of left) Object.assign(res, { destroyed: true }).emit('close');
    await Promise.all(ends);
    const second = Promise.withResolvers<void>();
    let begun = 0;
    const later = Array.from({ length: maxReading + 2 }, () =>
      takeTurn(by('a'), () => {
        begun++;
        return second.promise;
      }),
    );
    expect(begun, 'while the first are at work').to.equal(0);
    first.resolve();
    await Promise.all(works);
    await new Promise(setImmediate);
    expect(begun, 'when these are done').to.equal(maxReading);
    second.resolve();
    await Promise.all(later);
  });

  it(`are refused while ${maxWaiting} wait, and taken again when these are done`, async () => {
    const takeTurn = makeAccountTurns();
    const gate = Promise.withResolvers<void>();
    const many = Array.from({ length: maxReading + maxWaiting }, () => takeTurn(by('a'), () => gate.promise));
    const refused: Refusal = await takeTurn(by('a'), async () => undefined).catch((error) => error);
    expect([refused.code, refused.retryAfterSeconds]).to.deep.equal(['rate_limited', 1]);
    expect(refused.message).to.equal('You have exceeded the waiting-calls rate limit on your subscription');
    expect(await takeTurn(by('b'), async () => 'other')).to.equal('other');
    gate.resolve();
    await Promise.all(many);
    expect(await takeTurn(by('a'), async () => 'again')).to.equal('again');
  });

  it('are refused sooner while those of other accounts wait: several noisy ones leave room for the requests of everybody', async () => {
    const takeTurn = makeAccountTurns();
    let gate = Promise.withResolvers<void>();
    const refusedOf = async (account: string) => {
      let refused = 0;
      const many = Array.from({ length: maxReading + maxWaiting }, () =>
        takeTurn(by(account), () => gate.promise).catch(() => refused++),
      );
      all.push(...many);
      // A refusal settles at once, a call that waits does not.
      await new Promise(setImmediate);
      return refused;
    };
    const all: Promise<unknown>[] = [];
    const waiting = [];
    for (const account of ['a', 'b', 'c', 'd']) waiting.push(maxWaiting - (await refusedOf(account)));
    expect(waiting).to.deep.equal([500, 250, 125, 63]);
    gate.resolve();
    await Promise.all(all);
    gate = Promise.withResolvers();
    expect(await refusedOf('d')).to.equal(0);
    gate.resolve();
    await Promise.all(all);
  });
});

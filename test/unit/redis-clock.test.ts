import { expect } from 'chai';
import { RedisClock } from '../../src/store/redis/redis-time.ts';

const minute = 60_000;
const day = 86_400_000;
const start = Date.UTC(2026, 5);

/** A clock on a machine whose clocks a test moves. */
function aClock() {
  let monotonic = 5_000;
  let machine = start;
  let redis = start;
  const clock = new RedisClock(
    () => monotonic,
    () => machine,
  );
  const pass = (milliseconds: number) => {
    monotonic += milliseconds;
    machine += milliseconds;
    redis += milliseconds;
  };
  return {
    clock,
    pass,
    moveMachine: (milliseconds: number) => (machine += milliseconds),
    moveRedis: (milliseconds: number) => (redis += milliseconds),
    /** Reads TIME; the answer takes so long on its way there and back. */
    read: (there = 0, back = 0) =>
      clock.read(async () => {
        pass(there);
        const told = [String(Math.floor(redis / 1000)), String((redis % 1000) * 1000)];
        pass(back);
        return told;
      }),
    late: () => clock.now() - redis,
  };
}

describe('the clock of Redis', () => {
  it('refuses to say a time before TIME was read', () => {
    expect(() => aClock().clock.now()).to.throw('never read');
  });

  it('goes on between readings, whatever happens to the clock of this machine', async () => {
    const { clock, read, pass, moveMachine } = aClock();
    await read();
    pass(1_234);
    for (const milliseconds of [day, -3 * day, 90_000]) {
      moveMachine(milliseconds);
      expect(clock.now()).to.equal(start + 1_234);
    }
    expect(clock.machineAheadMs()).to.equal(90_000 - 2 * day);
    expect(clock.isSteady()).to.equal(true);
  });

  it('is no worse after a slow answer, and better after a fast one', async () => {
    const { read, late } = aClock();
    await read(900, 100);
    expect(late()).to.equal(400);
    await read(3, 3);
    expect(late()).to.be.within(-3, 3);
    await read(1_400, 10);
    expect(late()).to.be.within(-3, 3);
    await read(10, 1_400);
    expect(late()).to.be.within(-3, 3);
  });

  it('says whole milliseconds', async () => {
    const { clock, read, pass } = aClock();
    await read();
    pass(0.75);
    expect(clock.now()).to.equal(start);
  });

  const jumps: [title: string, milliseconds: number, isSteady: boolean][] = [
    ['4 minutes ahead', 4 * minute, true],
    ['4 minutes back', -4 * minute, true],
    ['6 minutes ahead', 6 * minute, false],
    ['6 minutes back', -6 * minute, false],
    ['a day ahead', day, false],
    ['a day back', -day, false],
  ];
  for (const [title, milliseconds, isSteady] of jumps) {
    it(`${isSteady ? 'is steady' : 'is not steady'} after it moved ${title}, and follows it`, async () => {
      const { clock, read, moveRedis, pass } = aClock();
      await read();
      pass(minute);
      moveRedis(milliseconds);
      await read();
      expect(clock.isSteady()).to.equal(isSteady);
      expect(clock.now()).to.equal(start + minute + milliseconds);
    });
  }

  it('is steady again 10 minutes after its last jump, not before', async () => {
    const { clock, read, moveRedis, pass } = aClock();
    await read();
    moveRedis(day);
    await read();
    pass(9 * minute);
    await read();
    moveRedis(-day);
    await read();
    pass(9 * minute);
    await read();
    expect(clock.isSteady()).to.equal(false);
    pass(minute);
    await read();
    expect(clock.isSteady()).to.equal(true);
  });

  it('has jumped when several small steps within 10 minutes make a large one, not when they take longer', async () => {
    for (const [apart, isSteady] of [
      [minute, false],
      [11 * minute, true],
    ] as const) {
      const { clock, read, moveRedis, pass } = aClock();
      await read();
      for (let n = 0; n < 3; n++) {
        pass(apart);
        moveRedis(2 * minute);
        await read();
      }
      expect(clock.isSteady(), `${apart / minute} minutes apart`).to.equal(isSteady);
    }
  });
});

import { expect } from 'chai';
import {
  type AttemptStage,
  maxStages,
  msOf,
  readStages,
  readStageTimes,
  writeStages,
} from '../../src/model/attempt-stages.ts';
import { startStageClock } from '../../src/worker/stage-clock.ts';

const msOfEach: Readonly<Record<AttemptStage, number>> = {
  inspect: 0,
  fetch: 1_000,
  record: 2_000,
  convert: 3_000,
  prove: 4_000,
  upload: 5_000,
};

describe('stages of an attempt', () => {
  it('are written by their first letters, which differ, and read back', () => {
    const times = readStageTimes(Object.entries(msOfEach).map(([stage, ms]) => ({ stage, ms }))) ?? [];
    expect(new Set(times.map(({ stage }) => stage.charAt(0))).size).to.equal(times.length);
    expect(writeStages(times)).to.equal('i0f1000r2000c3000p4000u5000');
    expect(readStages(`123${writeStages(times)}`)).to.deep.equal(times);
    expect(readStages('')).to.deep.equal([]);
    expect(readStages('12x5i7'), 'a letter of a later release').to.deep.equal([{ stage: 'inspect', ms: 7 }]);
  });

  for (const said of [
    ...[null, 'i1', {}, [1], [null], [{ stage: 'fetch' }], [{ stage: 'nap', ms: 1 }], [{ stage: 'fetch', ms: -1 }]],
    ...[[{ stage: 'fetch', ms: 1.5 }], [{ stage: 'fetch', ms: '1' }], [{ stage: 'fetch', ms: 1e9 + 1 }]],
    [
      { stage: 'inspect', ms: 1 },
      { stage: 'nap', ms: 1 },
    ],
    Array.from({ length: maxStages + 1 }, () => ({ stage: 'fetch', ms: 1 })),
  ]) {
    it(`are not ${JSON.stringify(said).slice(0, 60)}`, () => expect(readStageTimes(said)).to.equal(null));
  }

  it('may be twelve, and each of a million seconds', () => {
    const twelve = Array.from({ length: 12 }, () => ({ stage: 'fetch', ms: 1e9 }));
    expect(readStageTimes(twelve)).to.deep.equal(twelve);
  });

  it('take together as long as each of them', () => {
    const times = [
      { stage: 'inspect', ms: 320 },
      { stage: 'fetch', ms: 8401 },
      { stage: 'prove', ms: 0 },
    ] as const;
    expect([msOf([]), msOf(times)]).to.deep.equal([0, 8721]);
  });

  it('hold nothing but their names and times', () => {
    expect(readStageTimes([{ stage: 'fetch', ms: 1, more: 'x' }])).to.deep.equal([{ stage: 'fetch', ms: 1 }]);
  });

  it('are measured from one to the next, and at most twelve', () => {
    let now = 0;
    const clock = startStageClock(() => now);
    expect(clock.times()).to.deep.equal([]);
    for (const [at, word] of [
      [5, 'inspect'],
      [10, 'inspect'],
      [20, 'fetch'],
      [30, 'a word'],
      [100, 'fetch'],
    ] as const) {
      now = at;
      clock.enter(word);
    }
    expect(clock.times()).to.deep.equal([
      { stage: 'inspect', ms: 15 },
      { stage: 'fetch', ms: 80 },
    ]);
    for (let n = 0; n < 30; n++) clock.enter(n % 2 ? 'fetch' : 'inspect');
    expect(clock.times()).to.have.length(maxStages);
  });
});

import { expect } from 'chai';
import { judgeLayout, refuseRecord, type SeenRelease } from '../../src/model/record-layout.ts';

const minute = 60_000;
const now = 1_000 * minute;
const ours = { release: '2.0.0', own: 4, oldest: 3 };

describe('the layout of the record', () => {
  const readable: [number, string, RegExp | null][] = [
    [Number.NaN, '', /^The layout of the record is no number \(key \{trawl\}:schema\): .* \(4 for trawl 2\.0\.0\)/],
    [2, '', /^The record has layout 2, and trawl 2\.0\.0 reads none before 3: first run the releases in between/],
    [3, '', null],
    [3, '1.0.0', null],
    [4, '2.0.0', null],
    [
      5,
      '3.0.0',
      /^The record has layout 5, which trawl 3\.0\.0 or newer reads, and this is trawl 2\.0\.0 \(layout 4\): start the newer/,
    ],
    [5, '', /which a newer release reads/],
  ];
  for (const [layout, leastRelease, sentence] of readable) {
    it(`${layout} of ${leastRelease || 'an unknown release'} is ${sentence ? 'refused' : 'read'}`, () => {
      const refused = refuseRecord({ layout, leastRelease }, ours);
      if (sentence) expect(refused).to.match(sentence);
      else expect(refused).to.equal(null);
    });
  }

  const seen = (release: string, layout: number, first: number, last: number): SeenRelease => ({
    ...{ release, layout },
    firstSeen: now - first * minute,
    lastSeen: now - last * minute,
  });
  const until = (minutes: number) => ({ step: 'waiting', at: now + minutes * minute });
  const steps: [string, number, SeenRelease[], object, object][] = [
    ['the record has it', 4, [seen('1', 3, 99, 0), seen('2', 4, 9, 0)], { step: 'sealed' }, { step: 'sealed' }],
    ['nobody else was ever seen', 3, [seen('2', 4, 0, 0)], until(60), { step: 'move' }],
    ['the new release is young', 3, [seen('1', 3, 900, 300), seen('2', 4, 59, 0)], until(1), { step: 'move' }],
    [
      'the new release is an hour old',
      3,
      [seen('1', 3, 900, 300), seen('2', 4, 60, 0)],
      { step: 'move' },
      { step: 'move' },
    ],
    ['the older one left lately', 3, [seen('1', 3, 900, 59), seen('2', 4, 300, 0)], until(1), { step: 'move' }],
    [
      'the older one left an hour ago',
      3,
      [seen('1', 3, 900, 60), seen('2', 4, 300, 0)],
      { step: 'move' },
      { step: 'move' },
    ],
    ['the older one came back', 3, [seen('2', 4, 300, 0), seen('1', 3, 2, 2)], until(58), { step: 'move' }],
    [
      'another new release is older',
      3,
      [seen('2.1', 5, 70, 0), seen('2', 4, 0, 0)],
      { step: 'move' },
      { step: 'move' },
    ],
    ['the clock went back', 3, [seen('1', 3, 900, -5), seen('2', 4, 300, 0)], running(65), running(65)],
    [
      'the older one is silent for a minute',
      3,
      [seen('1', 3, 900, 1), seen('2', 4, 300, 0)],
      until(59),
      { step: 'move' },
    ],
    ['the older one runs', 3, [seen('1', 3, 900, 0.9), seen('2', 4, 300, 0)], running(59.1), running(59.1)],
  ];
  function running(minutes: number) {
    return { step: 'running', releases: ['1'], at: now + minutes * minute };
  }
  for (const [title, layout, releases, byItself, asked] of steps) {
    it(`of the next release, when ${title}: ${JSON.stringify(byItself)}, and when sealed: ${JSON.stringify(asked)}`, () => {
      expect(judgeLayout({ layout }, ours, releases, now, false)).to.deep.equal(byItself);
      expect(judgeLayout({ layout }, ours, releases, now, true)).to.deep.equal(asked);
    });
  }
});

import { expect } from 'chai';
import {
  type ReadInput,
  readAccountName,
  readAlias,
  readCategory,
  readPackTitle,
  readPlanName,
  readPurchasedAt,
  readSlug,
  readSwitch,
  readWhole,
  readWholeOrNone,
} from '../../src/model/operator-input.ts';

const odd: unknown[] = [null, undefined, 7, true, ['a'], { toString: () => 'a' }, Symbol('a')];
const unprintable = [
  'a\nb',
  'a\u0000',
  '\u202ea',
  'a\u200b',
  'a\u2028b',
  '\ud800',
  '\ue000',
  ' a',
  'a ',
  '\u00a0a',
  ' ',
];

const words: [read: (text: unknown) => ReadInput<string>, allowed: string[], refused: unknown[]][] = [
  [
    readSlug,
    ['a', '0', '9', 'acme', 'acme-2', 'a-', 'a'.repeat(63)],
    ['', '-a', 'A', 'ä', 'a_b', 'a.b', 'a b', 'a\n', 'a'.repeat(64), '../x', ...odd],
  ],
  [
    readPlanName,
    ['pro', '0', '9', 'Pro', '2026.pro_x-y', 'nonesuch', 'p'.repeat(63)],
    ['', 'none', 'None', '-pro', '.', 'pro plan', 'prö', 'pro\n', 'p'.repeat(64), ...odd],
  ],
  [
    readAlias,
    ['a', 'Main key', 'Über-Team 7 "x"', '日本', '...', '😀'.repeat(100), '__proto__'],
    ['', '.', '..', 'a'.repeat(101), '😀'.repeat(101), ...unprintable, ...odd],
  ],
  [readCategory, ['', 'production', 'Über-Team 7 "x"', 'c'.repeat(100)], ['c'.repeat(101), ...unprintable, ...odd]],
  [readPackTitle, ['Starter', '5 € pack', 't'.repeat(100)], ['', 't'.repeat(101), ...unprintable, ...odd]],
  [readAccountName, ['A', 'Acme & Sons', 'n'.repeat(100)], ['', 'n'.repeat(101), ...unprintable, ...odd]],
];

for (const [read, allowed, refused] of words) {
  describe(read.name, () => {
    for (const text of allowed) it(`takes ${shown(text)}`, () => expect(read(text)).to.eql({ value: text }));
    for (const text of refused) it(`refuses ${shown(text)} with a sentence`, () => expectSentence(read(text)));
  });
}

describe('readWhole', () => {
  const limits = { min: 1, max: 30 };
  const allowed: [value: unknown, whole: number][] = [
    ['1', 1],
    ['30', 30],
    ['007', 7],
    [1, 1],
    [30, 30],
  ];
  for (const [value, whole] of allowed) {
    it(`takes ${shown(value)} within 1 to 30`, () => expect(readWhole(value, limits)).to.eql({ value: whole }));
  }

  const texts = [
    '',
    ' ',
    '0',
    '31',
    '-1',
    '+1',
    '1.5',
    '1.0',
    '1e1',
    '0x1',
    '1_0',
    '1,0',
    ' 1',
    '1 ',
    '1\n',
    '١',
    'x',
    'none',
    'Infinity',
  ];
  const others = [
    0,
    31,
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e21,
    5n,
    null,
    undefined,
    true,
    [1],
    ['1'],
    { valueOf: () => 1 },
  ];
  for (const value of [...texts, ...others]) {
    it(`refuses ${shown(value)} within 1 to 30 with a sentence`, () => expectSentence(readWhole(value, limits)));
  }

  it('takes 0 to 10^12 unless told otherwise', () => {
    expect(readWhole('0')).to.eql({ value: 0 });
    expect(readWhole('1000000000000')).to.eql({ value: 1e12 });
    for (const above of ['1000000000001', '9999999999999', '99999999999999999999', 1e12 + 1])
      expectSentence(readWhole(above));
  });

  it('never goes above 10^12, whatever it is told', () => expectSentence(readWhole('1000000000001', { max: 2e12 })));

  it('names the option and its limits in the refusal', () => {
    expect(readWhole('x', { ...limits, subject: '--total' }).problem).to.equal(
      '--total must be a whole number from 1 to 30',
    );
  });
});

describe('readWholeOrNone', () => {
  const rows: [value: unknown, read: number | null][] = [
    ['none', null],
    [null, null],
    ['5', 5],
    [5, 5],
    ['0', 0],
  ];
  for (const [value, read] of rows)
    it(`takes ${shown(value)}`, () => expect(readWholeOrNone(value)).to.eql({ value: read }));
  for (const value of ['None', '', '-1', undefined]) {
    it(`refuses ${shown(value)} with a sentence`, () => expectSentence(readWholeOrNone(value)));
  }
  it('names null as allowed in the refusal of a number of JSON, where the word none is no number', () => {
    const { problem } = readWholeOrNone(0, { min: 1, max: 9, subject: 'monthly_cap_cents' });
    expect(problem).to.equal('monthly_cap_cents must be a whole number from 1 to 9, or null');
  });
  it('names none as allowed in the refusal', () => {
    const { problem } = readWholeOrNone('x', { min: 1, max: 9, subject: '--per-second' });
    expect(problem).to.equal('--per-second must be a whole number from 1 to 9, or none');
  });
});

describe('readSwitch', () => {
  const rows: [value: unknown, read: boolean][] = [
    ['yes', true],
    ['on', true],
    [true, true],
    ['no', false],
    ['off', false],
    [false, false],
  ];
  for (const [value, read] of rows)
    it(`takes ${shown(value)} for ${read}`, () => expect(readSwitch(value)).to.eql({ value: read }));
  for (const value of [
    '',
    'Yes',
    'yes please',
    'maybe',
    'true',
    'constructor',
    '__proto__',
    1,
    0,
    null,
    undefined,
    ['yes'],
  ]) {
    it(`refuses ${shown(value)} with a sentence`, () => expectSentence(readSwitch(value)));
  }
  it('names the option in the refusal', () =>
    expect(readSwitch('x', '--paid').problem).to.match(/^--paid must be yes or no/));
});

describe('readPurchasedAt', () => {
  const rows: [text: string, time: number][] = [
    ['2026-03-04', Date.UTC(2026, 2, 4)],
    ['2026-03-04T05:06:07Z', Date.UTC(2026, 2, 4, 5, 6, 7)],
  ];
  for (const [text, time] of rows) it(`takes ${text}`, () => expect(readPurchasedAt(text)).to.eql({ value: time }));
  for (const text of ['', '2026-02-30', 'today', '2026-03-04T05:06:07', 1772600000000, null]) {
    it(`refuses ${shown(text)} with a sentence`, () => expectSentence(readPurchasedAt(text)));
  }
});

function expectSentence({ value, problem }: ReadInput<unknown>): void {
  expect(value).to.equal(undefined);
  expect(problem).to.match(/^\S.{15,150}[^.\s]$/);
}

function shown(value: unknown): string {
  const text =
    typeof value === 'string'
      ? JSON.stringify(value)
      : String(typeof value === 'object' ? JSON.stringify(value) : String(value));
  return text.length > 40 ? `${text.slice(0, 20)}… of ${text.length}` : text;
}

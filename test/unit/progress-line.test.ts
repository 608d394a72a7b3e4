import { expect } from 'chai';
import { readUrlList } from '../../src/client/get-order.ts';
import { progressLine, writeBytes } from '../../src/client/progress-line.ts';

const shown = {
  ended: 0,
  total: 1,
  stage: 'fetch',
  fraction: 0.456,
  speedBytes: 3_210_000,
  leftSeconds: 75,
};

describe('the line of progress', () => {
  it('fits every width, with two columns for ^C and one for the cursor', () => {
    for (let columns = 1; columns <= 250; columns++) {
      for (const total of [1, 1000]) {
        const line = progressLine({ ...shown, total, ended: total - 1 }, columns, true);
        expect([...line].length, `${columns} columns`).to.be.at.most(Math.max(1, columns - 3));
      }
    }
  });

  const alone = { speedBytes: null, leftSeconds: null };
  const lines = [
    [20, {}, '45% fetch'],
    [30, {}, '###.....  45%  fetch'],
    [40, {}, '####......  45%  fetch, 1:15 left'],
    [40, { total: 3, ended: 1 }, '1/3 ##....  45%  fetch, 1:15 left'],
    [40, { stage: 'queue: 10000', ...alone }, '####......  45%  queue: 10000'],
    [40, { stage: 'queue: 10000', ...alone, total: 1000, ended: 100 }, '100/1000 ####.....  45%  queue: 10000'],
    [80, {}, '##################......................  45%  fetch, 3.2 MB/s, 1:15 left'],
    [80, { leftSeconds: 36_000 }, '##################......................  45%  fetch, 3.2 MB/s, 10:00:00 left'],
    [80, { leftSeconds: null }, '##################......................  45%  fetch, 3.2 MB/s'],
  ] as const;
  for (const [columns, change, line] of lines) {
    it(`is ${line} at ${columns} columns`, () => {
      expect(progressLine({ ...shown, ...change }, columns, false)).to.equal(line);
    });
  }

  it('writes sizes and times shortly', () => {
    const sizes = [0, 999, 1000, 123_456, 3_210_000, 12e9].map(writeBytes);
    expect(sizes).to.deep.equal(['0 B', '999 B', '1.0 KB', '123 KB', '3.2 MB', '12.0 GB']);
    const times = [0, 5, 75, 10_921].map((leftSeconds) => progressLine({ ...shown, leftSeconds }, 80, false));
    const left = times.map((line) => line.split(', ').at(-1));
    expect(left).to.deep.equal(['0:00 left', '0:05 left', '1:15 left', '3:02:01 left']);
  });

  it('skips blank lines and comments of a list', () => {
    expect(readUrlList('# a\n\n https://one.example/#x \r\n#https://two.example\nhttps://three.example')).to.deep.equal(
      ['https://one.example/#x', 'https://three.example'],
    );
  });
});

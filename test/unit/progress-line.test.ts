import { expect } from 'chai';
import { readUrlList } from '../../src/client/get-options.ts';
import { progressLine, writeBytes, writeSeconds } from '../../src/client/progress-line.ts';

const shown = {
  ended: 0,
  total: 1,
  stage: 'fetch video',
  fraction: 0.456,
  speedBytes: 3_210_000,
  leftSeconds: 75,
};

describe('the line of progress', () => {
  it('fits every width, and shows most where there is room', () => {
    for (let columns = 1; columns <= 250; columns++) {
      for (const total of [1, 1000]) {
        const line = progressLine({ ...shown, total, ended: total - 1 }, columns, true);
        expect([...line].length, `${columns} columns`).to.be.at.most(Math.max(1, columns - 1));
      }
    }
  });

  const widths = [
    [20, '45% fetch video'],
    [40, 'fetch video  ####......  45%  1:15 left'],
    [80, 'fetch video  #################......................  45%   3.2 MB/s  1:15 left'],
  ] as const;
  for (const [columns, line] of widths) {
    it(`drops what matters least at ${columns} columns`, () => {
      expect(progressLine(shown, columns, false)).to.equal(line);
    });
  }

  it('writes sizes and times shortly', () => {
    const sizes = [0, 999, 1000, 123_456, 3_210_000, 12e9].map(writeBytes);
    expect(sizes).to.deep.equal(['0 B', '999 B', '1.0 KB', '123 KB', '3.2 MB', '12.0 GB']);
    expect([0, 5, 75, 10_921].map(writeSeconds)).to.deep.equal(['0:00', '0:05', '1:15', '3:02:01']);
  });

  it('skips blank lines and comments of a list', () => {
    expect(readUrlList('# a\n\n https://one.example/#x \r\n#https://two.example\nhttps://three.example')).to.deep.equal(
      ['https://one.example/#x', 'https://three.example'],
    );
  });
});

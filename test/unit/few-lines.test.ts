import { expect } from 'chai';
import { fewLines } from '../../src/base/few-lines.ts';
import type { Fields } from '../../src/base/log.ts';

describe('few lines of a log', () => {
  it('are ten in a minute, and the first of the next minute tells how many were left out', () => {
    const written: (Fields | undefined)[] = [];
    let now = 0;
    const warn = fewLines(
      (_, fields) => written.push(fields),
      () => now,
    );
    for (let n = 0; n < 1_000; n++) warn('a step failed', { n });
    now = 59_999;
    warn('a step failed', { n: 1_000 });
    expect(written).to.deep.equal(Array.from({ length: 10 }, (_, n) => ({ n })));
    now = 60_000;
    warn('a step failed', { n: 1_001 });
    warn('a step failed');
    expect(written.slice(10)).to.deep.equal([{ n: 1_001, left_out: 991 }, undefined]);
  });
});

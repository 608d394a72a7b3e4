import { mock } from 'node:test';
import { expect } from 'chai';
import { fewLines } from '../../src/base/few-lines.ts';

describe('few lines of a log', () => {
  let written: unknown[];
  const warn = fewLines((sentence, fields) => written.push([sentence, fields]));
  const fail = (times: number) => {
    for (let n = 0; n < times; n++) warn('a step failed', { n });
  };
  beforeEach(() => {
    written = [];
    mock.timers.enable({ apis: ['setTimeout'] });
  });
  afterEach(() => {
    mock.timers.tick(60_000);
    mock.timers.reset();
  });

  it('are ten of a sentence in a minute', () => {
    fail(1_000);
    mock.timers.tick(59_999);
    fail(1);
    expect(written).to.deep.equal(Array.from({ length: 10 }, (_, n) => ['a step failed', { n }]));
  });

  it('have the number of those left out at the end of the minute, although no further line comes', () => {
    fail(1_000);
    mock.timers.tick(60_000);
    expect(written.slice(10)).to.deep.equal([['a step failed', { left_out: 990 }]]);
    warn('a step failed');
    expect(written.slice(11)).to.deep.equal([['a step failed', undefined]]);
  });

  it('say nothing at the end of a minute in which none was left out', () => {
    fail(10);
    mock.timers.tick(60_000);
    expect(written).to.have.length(10);
  });

  it('leave out no line of another fault behind a flood of one', () => {
    fail(1_000);
    warn('taking the lead failed');
    expect(written.at(-1)).to.deep.equal(['taking the lead failed', undefined]);
  });
});

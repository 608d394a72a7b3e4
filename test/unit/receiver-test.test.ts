import { expect } from 'chai';
import { egressVerdicts } from '../../src/base/egress-verdict.ts';
import { describeTest } from '../../src/model/receiver-test.ts';

const sentenceOf = (why: string, is: 'failed' | 'refused' = 'failed') => {
  const test = describeTest({ is, why }, 12);
  return test.state === 'ended' ? test.sentence : '';
};

describe('what a person reads of a test of a receiver', () => {
  it('is a sentence of its own for each verdict of egress', () => {
    const unknown = sentenceOf('read ECONNRESET');
    const told = egressVerdicts
      .filter((verdict) => verdict !== 'open')
      .map((verdict) => sentenceOf(verdict, 'refused'));
    expect(new Set([...told, unknown]).size).to.equal(told.length + 1);
  });

  for (const why of [...egressVerdicts.filter((verdict) => verdict !== 'open'), 'stopped', 'unsealed']) {
    it(`is a whole sentence for ${why}`, () => expect(sentenceOf(why, 'refused')).to.match(/^[A-Z].{20,}\.$/));
  }

  for (const [why, sentence] of [
    ['self-signed certificate', 'The host has no certificate that is trusted for its name.'],
    ['socket hang up', 'The connection broke off before an answer came.'],
    ['toString', 'The connection broke off before an answer came.'],
  ] as const) {
    it(`hides the error "${why}" behind a sentence`, () => {
      expect(sentenceOf(why)).to.equal(sentence);
    });
  }

  const [redirect, other] = [/ Redirects are not followed: /, / must answer 2xx: /];
  for (const [status, delivered, advice] of [
    [199, false, other],
    [200, true, null],
    [299, true, null],
    [300, false, redirect],
    [308, false, redirect],
    [399, false, redirect],
    [400, false, other],
    [404, false, other],
    [503, false, other],
  ] as const) {
    it(`${delivered ? 'counts' : 'does not count'} ${status} as delivered, and says what to do`, () => {
      const test = describeTest({ is: 'answered', status }, 7.4);
      expect(test).to.include({ delivered, status, took_ms: 7 });
      const [told = '', ...rest] = ('sentence' in test ? test.sentence : '').split(/(?<=ms\.)/);
      expect(told).to.match(new RegExp(` ${status} .* 7 ms\\.$`));
      if (advice === null) expect(rest).to.deep.equal([]);
      else expect(rest.join('')).to.match(advice);
    });
  }

  it('says that nothing was sent while egress takes no connection', () => {
    const test = describeTest({ is: 'unsent', why: 'connect ENOENT /data/egress.sock' }, 12);
    const sentence = 'The proxy through which webhooks go is away at this moment, so nothing was sent: try again.';
    expect(test).to.include({ sentence, status: null, delivered: false });
  });

  it('says how long a receiver was waited for', () => {
    const test = describeTest({ is: 'hung', why: 'no answer in time' }, 10_003);
    expect(test).to.include({ sentence: 'The receiver gave no answer within 10 s.', status: null });
  });
});

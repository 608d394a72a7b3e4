import { mock } from 'node:test';
import { expect } from 'chai';
import { warnOfParts } from '../../src/api/part-warnings.ts';
import { type NeededPart, refuse, refuseWithout } from '../../src/base/errors.ts';
import { aLog } from '../support/redis.ts';

describe('warnings of an answer 503', () => {
  let lines: string[];
  let warn: ReturnType<typeof warnOfParts>;
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const made = aLog();
    lines = made.lines;
    warn = warnOfParts(made.log);
  });
  afterEach(() => mock.timers.reset());

  const sentences: Readonly<Record<NeededPart, string>> = {
    redis: 'redis did not answer',
    inspector: 'the inspector did not answer',
    'object store': 'the object store did not answer',
  };
  for (const [part, sentence] of Object.entries(sentences) as [NeededPart, string][]) {
    it(`name the ${part} that did not answer, the route and the cause`, () => {
      warn(refuseWithout(part, new Error('timed out')), 'GET /v1/jobs');
      expect(lines).to.have.length(1);
      const { level, text, route, error } = JSON.parse(lines[0]!) as Record<string, unknown>;
      expect({ level, text, route }).to.deep.equal({
        level: 'warn',
        text: `a request was answered 503: ${sentence}`,
        route: 'GET /v1/jobs',
      });
      expect(JSON.stringify(error)).to.contain('timed out');
    });
  }

  it('are not written while every part answers', () => {
    warn(refuse('unavailable'), 'GET /v1/jobs');
    warn(Object.assign(new Error('no refusal'), { part: 'redis' }), 'GET /v1/jobs');
    expect(lines).to.deep.equal([]);
  });

  it('are ten a minute for each part, so that one that is away hides no other', () => {
    for (let n = 0; n < 1_000; n++) warn(refuseWithout('redis', new Error('away')), 'GET /v1/jobs');
    warn(refuseWithout('inspector', new Error('away')), 'GET /v1/media/metadata');
    expect(lines).to.have.length(11);
    expect(lines.at(-1)).to.contain('the inspector did not answer');
  });
});

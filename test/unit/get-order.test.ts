import { expect } from 'chai';
import { UsageError } from '../../src/base/command-line.ts';
import { readGetOrder } from '../../src/client/get-order.ts';

describe('the command line of trawl get', () => {
  const order = (...options: string[]) => readGetOrder(['https://example.com/1', ...options]);

  it('refuses seconds that the service would refuse for every URL, as wrong usage', () => {
    const wrong: readonly [option: string, seconds: string, sentence: string][] = [
      ['--max-duration', '0', '--max-duration must be above 0'],
      ['--max-duration', '0.000', '--max-duration must be above 0'],
      ['--max-duration', '86401', '--max-duration must be at most 86400'],
      ['--start', '86400.5', '--start must be at most 86400'],
      ['--end', '90000', '--end must be at most 86400'],
      ['--end', '0', '--end must be later than --start'],
      ['--start', '-1', '--start'],
    ];
    for (const [option, seconds, sentence] of wrong) {
      expect(() => order(`${option}=${seconds}`), `${option} ${seconds}`).to.throw(UsageError, sentence);
    }
  });

  it('takes the least and the most seconds that the service takes', () => {
    expect(order('--max-duration', '86400')).to.deep.include({ parameters: { max_duration: 86_400 } });
    expect(order('--max-duration', '0.001')).to.deep.include({ parameters: { max_duration: 0.001 } });
    expect(order('--start', '0', '--end', '86400')).to.deep.include({ parameters: { start: 0, end: 86_400 } });
  });
});

import { expect } from 'chai';
import { fewAtATime } from '../../src/api/account-turns.ts';

describe('one piece of work of an account at a time', () => {
  it('refuses a second one of the same account until the first has ended, whatever its end', async () => {
    const doOne = fewAtATime(1, 'Wait for the end of the other one');
    const first = Promise.withResolvers<string>();
    const running = doOne('a', () => first.promise);
    const refused = await doOne('a', async () => 'second').catch((error) => `${error.code}: ${error.message}`);
    expect(refused).to.equal('rate_limited: Wait for the end of the other one');
    expect(await doOne('b', async () => 'of another account')).to.equal('of another account');
    first.reject(new Error('failed'));
    expect(await running.catch((error) => error.message)).to.equal('failed');
    expect(await doOne('a', async () => 'next')).to.equal('next');
  });
});

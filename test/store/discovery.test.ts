import { expect } from 'chai';
import { followTopology, readTopology } from '../../src/store/redis/discovery.ts';
import { aLog } from '../support/redis.ts';

describe('a Redis URL', () => {
  const names = [
    { url: 'redis://redis:6379', name: 'redis:6379' },
    { url: 'rediss://user:hidden@redis.example:6380/2', name: 'redis.example:6380/2' },
    { url: 'redis://:hidden@a:1, redis://:hidden@b:2', name: 'a:1,b:2' },
    { url: 'redis+sentinel://user:hidden@a:1,b/mymaster/3', name: 'a:1,b' },
    { url: 'unix:///run/redis.sock', name: '/run/redis.sock' },
  ];
  for (const { url, name } of names) {
    it(`is shown as ${name}, without its credentials`, () => {
      expect(readTopology(url).name).to.equal(name);
    });
  }

  const wrong = [
    '',
    'redis:6379',
    'http://a',
    'redis://a,b:1',
    'redis+sentinel://a:1',
    'redis+sentinel://a:1/',
    'unix:path',
  ];
  for (const url of wrong) {
    it(`is refused: '${url}'`, () => {
      expect(() => readTopology(url)).to.throw(/^A Redis URL has the form/);
    });
  }

  for (const [scheme, rest] of [
    ['redis', 'a:1'],
    ['redis+sentinel', 'a:1,b:2/main'],
  ]) {
    it(`may have a new password with @, which is no other redis: ${scheme}`, () => {
      const { log, lines } = aLog();
      let url = `${scheme}://user:first@${rest}`;
      const topology = followTopology(() => url, log);
      expect(topology.login()).to.deep.equal(['user', 'first']);
      url = `${scheme}://user:p@ss@${rest}`;
      expect(topology.login()).to.deep.equal(['user', 'p@ss']);
      expect(lines).to.deep.equal([]);
    });
  }

  it('of one redis is asked for its cluster only after a MOVED reply', async () => {
    const place = readTopology('redis://127.0.0.1:1');
    expect(await place.find(0)).to.equal('redis://127.0.0.1:1');
    place.moved();
    const failure = await place.find(0).catch((error) => error);
    expect(failure.message).to.contain('ECONNREFUSED');
  });
});

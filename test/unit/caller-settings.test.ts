import { expect } from 'chai';
import { readConfig, readSettings } from '../../src/base/config.ts';

describe('the settings of callers', () => {
  it('are ignored by every role, whatever they hold, and no file is read for them', () => {
    const env = { TRAWL_API_URL: 'localhost:8080', TRAWL_API_KEY: 'a b', TRAWL_API_KEY_FILE: '/missing' };
    const readNothing = (path: string): string => {
      throw new Error(`${path} was read`);
    };
    expect(readConfig(env, {}, readNothing)).to.deep.equal(readConfig({}));
  });

  it('give TRAWL_API_KEY without the line end of its file', () => {
    const read = readSettings({ TRAWL_API_KEY_FILE: '/run/it' }, ['TRAWL_API_KEY'], () => 'word\n');
    expect(read).to.deep.equal({ apiKey: 'word' });
  });
});

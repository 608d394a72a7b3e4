import { expect } from 'chai';
import { rememberKeys } from '../../src/api/keys.ts';
import { makeAccountId, makeKey, readKey } from '../../src/model/api-key.ts';

const account = makeAccountId(new Uint8Array(16).fill(7));
const aKey = (n: number) => makeKey(account, new Uint8Array(32).fill(n & 255).fill(n >> 8, 0, 8));

describe('keys that are remembered', () => {
  it('are read as they are the first time, and every other time too', () => {
    const read = rememberKeys();
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < 1_500; n++) expect(read(aKey(n))).to.deep.equal(readKey(aKey(n)));
    }
  });

  it('are none of those that have no form of a key', () => {
    const read = rememberKeys();
    const wrong = `${aKey(1).slice(0, -1)}${aKey(1).endsWith('0') ? '1' : '0'}`;
    for (const text of [wrong, wrong, '', undefined, ['x'], aKey(1).toLowerCase()]) expect(read(text)).to.equal(null);
  });
});

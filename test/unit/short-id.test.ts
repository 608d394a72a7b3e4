import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { longId, shortId } from '../../src/store/keys.ts';

describe('the short id of a job', () => {
  it('has 22 characters and leads back to the id', () => {
    for (const id of [randomUUID(), '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']) {
      expect(shortId(id)).to.match(/^[A-Za-z0-9_-]{22}$/);
      expect(longId(shortId(id))).to.equal(id);
    }
  });

  it('is the id itself where that is no UUID', () => {
    for (const id of ['none', '']) expect([shortId(id), longId(id)]).to.deep.equal([id, id]);
  });
});

import { expect } from 'chai';
import { mayTakeSlot } from '../../src/model/slot-share.ts';

describe('slots that accounts share', () => {
  const rows: [slots: number, shares: number[]][] = [
    [1, [1]],
    [2, [1, 1]],
    [4, [2, 1, 1]],
    [8, [4, 2, 1, 1]],
    [9, [5, 2, 1, 1]],
    [100, [50, 25, 13, 6, 3, 2, 1]],
  ];
  for (const [slots, shares] of rows) {
    it(`of ${slots}, accounts that take as many as they can get ${shares.join(', ')}`, () => {
      let free = slots;
      const taken = shares.map(() => {
        let used = 0;
        for (; mayTakeSlot(used, free); free--) used++;
        return used;
      });
      expect(taken).to.deep.equal(shares);
      expect(free).to.equal(0);
    });
  }
});

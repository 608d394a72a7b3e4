import { expect } from 'chai';
import { findChildUsers } from '../../src/worker/user-id-ranges.ts';

const all = '         0          0 4294967295\n';
const container = '0 100000 65536\n';

describe('The user ids of children', () => {
  const rows: [title: string, maps: string[], attempts: [number, number], inspections: [number, number]][] = [
    ['a machine, far above those of people', [all, all], [2_000_000_000, 2 ** 22], [1_000_000_000, 1_000_000_000]],
    ['a container of 65,536 ids, in their upper half', [container, container], [32_768, 16_383], [49_151, 16_383]],
    ['ids of users and groups that differ, in what both have', [all, '0 0 1000'], [500, 250], [750, 250]],
    ['several ranges, in the largest', ['0 1000 1\n1 100000 65535\n', all], [32_768, 16_383], [49_151, 16_383]],
    ['a namespace of one id, which is none of their own', ['0 1000 1', '0 1000 1'], [0, 1], [1, 1]],
  ];
  for (const [title, maps, [first, count], [second, many]] of rows) {
    it(`are found for ${title}`, () => {
      expect(findChildUsers(maps)).to.deep.equal({
        attempts: { first, count },
        inspections: { first: second, count: many },
      });
    });
  }
});

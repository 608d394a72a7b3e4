import { expect } from 'chai';
import { inspectionsAtOnce } from '../../src/base/resource-limits.ts';

describe('the inspections at once', () => {
  for (const [processors, gibibytes, expected, title] of [
    [2, 16, 8, 'are four for each processor where the memory is large'],
    [64, 2, 16, 'fit into the memory limit of a pod on a node with many processors'],
    [16, 0.75, 6, 'become fewer with less memory'],
    [1, 0.25, 4, 'are never fewer than four'],
  ] as const) {
    it(title, () => {
      expect(inspectionsAtOnce(processors, gibibytes * 2 ** 30)).to.equal(expected);
    });
  }
});

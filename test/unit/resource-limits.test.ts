import { expect } from 'chai';
import { connectionsOfInspection, inspectionsAtOnce, maxClientConnections } from '../../src/base/resource-limits.ts';

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

describe('the connections to egress of one inspection', () => {
  it('are 16 where few run at once', () => {
    expect(connectionsOfInspection(8)).to.equal(16);
  });

  for (const inspections of [32, 128, 200]) {
    it(`fit into those of one client when ${inspections} run at once`, () => {
      expect(inspections * connectionsOfInspection(inspections)).to.be.within(1, maxClientConnections);
    });
  }

  it('are never none', () => {
    expect(connectionsOfInspection(1000)).to.equal(1);
  });
});

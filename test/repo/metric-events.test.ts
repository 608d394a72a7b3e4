import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { expectNames } from '../support/same-names.ts';
import { read } from '../support/tree.ts';
import { metricEvents } from '../watch/metric-events.ts';

describe('the events that move metrics', () => {
  it('are known for every metric, once', () => {
    const declared = Object.keys(makeMetrics()).filter((name) => !['registry', 'refreshers'].includes(name));
    const told = metricEvents.map(({ metric }) => metric);
    expectNames('test/watch/metric-events.ts', told, declared);
    expect(told).to.have.lengthOf(declared.length);
  });

  it('are each seen by a test that is there, in a file that names the metric', () => {
    for (const { metric, test } of metricEvents) {
      const [file, title] = test;
      const text = read(`test/${file}`);
      expect(text, `${metric}: ${file}`).to.include(title);
      const names = new RegExp(`\\b(trawl_)?${metric}(_bucket|_count|_sum)?\\b`);
      expect(text, `${metric}: ${file}`).to.match(names);
    }
  });
});

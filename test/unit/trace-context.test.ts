import { expect } from 'chai';
import { readTraceparent, spanIdOf, traceField, writeTraceparent } from '../../src/model/trace-context.ts';

const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
const whole = `00-${traceId}-${spanId}-01`;

describe('trace context', () => {
  it('is read from a traceparent of W3C Trace Context', () => {
    expect(readTraceparent(whole)).to.deep.equal({ traceId, spanId, isSampled: true });
    expect(readTraceparent(`00-${traceId}-${spanId}-00`)).to.include({ isSampled: false });
    expect(readTraceparent(`00-${traceId}-${spanId}-03`)).to.include({ isSampled: true });
    expect(readTraceparent(`cc-${traceId}-${spanId}-01-what-comes-later`), 'a later version').to.include({ spanId });
  });

  for (const [what, trace, span] of [
    ['a trace that begins with zeros', '1'.padStart(32, '0'), spanId],
    ['a trace that ends with zeros', '1'.padEnd(32, '0'), spanId],
    ['a span that begins with zeros', traceId, '1'.padStart(16, '0')],
    ['a span that ends with zeros', traceId, '1'.padEnd(16, '0')],
  ] as const) {
    it(`is read of ${what}`, () =>
      expect(readTraceparent(`00-${trace}-${span}-01`)).to.include({ traceId: trace, spanId: span }));
  }

  it('is read from 256 characters, and not from one more', () => {
    const later = `01-${traceId}-${spanId}-01-`;
    expect(readTraceparent(later.padEnd(256, 'x'))).to.include({ traceId, spanId });
    expect(readTraceparent(later.padEnd(257, 'x'))).to.equal(null);
  });

  it('is not read from any other text', () => {
    const wrong = [
      undefined,
      '',
      whole.toUpperCase(),
      `${whole}-more`,
      `ff-${traceId}-${spanId}-01`,
      `00-${'0'.repeat(32)}-${spanId}-01`,
      `00-${traceId}-${'0'.repeat(16)}-01`,
      `00-${traceId.slice(1)}-${spanId}-01`,
      `00-${traceId}-${spanId}-1`,
      `${whole}, ${whole}`,
      ` ${whole}`,
    ];
    for (const header of wrong) expect(readTraceparent(header), header).to.equal(null);
  });

  it('is a field of log lines about what is traced, and of no others', () => {
    expect(traceField({ traceId })).to.deep.equal({ trace_id: traceId });
    expect(traceField(null)).to.deep.equal({});
  });

  it('is written as it is read', () => {
    expect(writeTraceparent({ traceId, spanId })).to.equal(whole);
  });

  it('gives every process the same id for the same span, and every span its own', () => {
    const ids = [
      spanIdOf({ traceId, spanId }, 'job', 'queue 1'),
      spanIdOf({ traceId, spanId }, 'job', 'queue 2'),
      spanIdOf({ traceId, spanId }, 'another', 'queue 1'),
      spanIdOf({ traceId, spanId: 'a'.repeat(16) }, 'job', 'queue 1'),
    ];
    expect(new Set(ids).size).to.equal(4);
    for (const id of ids) expect(id).to.match(/^[0-9a-f]{16}$/);
    expect(spanIdOf({ traceId, spanId }, 'job', 'queue 1')).to.equal(ids[0]);
  });
});

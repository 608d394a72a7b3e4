import { expect } from 'chai';
import { readTraceparent, spanIdOf, writeTraceparent } from '../../src/model/trace-context.ts';

const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
const whole = `00-${traceId}-${spanId}-01`;

describe('trace context', () => {
  it('is read from a traceparent of W3C Trace Context', () => {
    expect(readTraceparent(whole)).to.deep.equal({ traceId, spanId, isSampled: true });
    expect(readTraceparent(`00-${traceId}-${spanId}-00`)).to.include({ isSampled: false });
    expect(readTraceparent(`00-${traceId}-${spanId}-03`)).to.include({ isSampled: true });
    expect(readTraceparent(`cc-${traceId}-${spanId}-01-what-comes-later`), 'a later version').to.include({ spanId });
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
      `01-${traceId}-${spanId}-01-${'x'.repeat(300)}`,
    ];
    for (const header of wrong) expect(readTraceparent(header), header).to.equal(null);
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

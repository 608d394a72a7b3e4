import { expect } from 'chai';
import { readRetryAfter } from '../../src/client/service-client.ts';

describe('Retry-After, as trawl get reads it', () => {
  const read = (wait: string | null, sent: string | null = null) => {
    const headers = { ...(wait !== null && { 'retry-after': wait }), ...(sent !== null && { date: sent }) };
    return readRetryAfter(new Response(null, { headers }));
  };

  it('is a number of seconds', () => {
    expect([read('0'), read('7'), read('999999')]).to.deep.equal([0, 7_000, 999_999_000]);
  });

  it('is a date, counted by the clock of its sender', () => {
    const sent = 'Wed, 04 Mar 2026 10:00:00 GMT';
    expect(read('Wed, 04 Mar 2026 10:00:09 GMT', sent)).to.equal(9_000);
    expect(read('Wed, 04 Mar 2026 09:59:00 GMT', sent)).to.equal(0);
    // Without it nothing is known: the clock of this machine may be another one.
    expect(read('Wed, 04 Mar 2026 10:00:09 GMT')).to.equal(null);
  });

  it('says nothing when it is neither', () => {
    expect([null, '', '-5', '1.5', '1234567', 'soon', 'GMT', 'x GMT'].map((wait) => read(wait))).to.deep.equal(
      Array.from({ length: 8 }, () => null),
    );
  });
});

import { expect } from 'chai';
import { keyJson } from '../../src/model/account.ts';

describe('a key as commands and the dashboard show it', () => {
  const quotas = { total: null, monthly: 1000, weekly: null, daily: 50 };
  const key = { id: 'k1', alias: 'main', category: 'production', active: true, quotas };
  const times = { created_at: 0, last_used_at: 1_500, expires: Date.UTC(2026, 2, 4, 23, 59, 59, 999) };

  it('has times as text, and does not name its account', () => {
    expect(keyJson({ ...key, ...times, account: 'abc123def456' })).to.deep.equal({
      ...key,
      created_at: '1970-01-01T00:00:00.000Z',
      last_used_at: '1970-01-01T00:00:01.500Z',
      expires: '2026-03-04T23:59:59.999Z',
    });
  });

  it('has null for an expiry that is not set and a use that has not come', () => {
    const unused = keyJson({ ...key, created_at: 0, last_used_at: null, expires: null, account: 'abc123def456' });
    expect(unused).to.include({ last_used_at: null, expires: null });
  });
});

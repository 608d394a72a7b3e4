import { expect } from 'chai';
import { keys } from '../../src/store/keys.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import { type Dashboard, eachWithDashboard } from '../support/browser-session.ts';
import { freeLine } from '../support/free-line.ts';
import { aLog } from '../support/redis.ts';

const dayMs = 86_400_000;

describe('the requests of one day on the dashboard', () => {
  let on: Dashboard;
  eachWithDashboard((dashboard) => {
    on = dashboard;
  });

  /** Writes lines of now, as the API does. */
  const write = async (count: number) => {
    const { keyId, account: accountId } = on.caller;
    const log = openRequestLog(on.api.store, 1_000_000, aLog().log);
    for (let n = 0; n < count; n++) log.add({ keyId, accountId }, { ...freeLine, at: on.api.store.clock.now() });
    await log.close();
  };
  /** Writes a line as it was written then. */
  const writeThen = (at: number, endpoint: string) => {
    const fields = { ...freeLine, at, endpoint };
    const flat = Object.entries(fields).flatMap(([name, value]) => [name, String(value)]);
    return on.api.redis.connection.read(['XADD', keys.freeLines(on.caller.keyId), `${at}-0`, ...flat] as never);
  };
  const ask = async (path: string) => on.owner.ask('GET', path);

  it('are on the first page and in its file, however many came since', async () => {
    // No rehearsal: lines have the time of Redis.
    on.api.store.advance(-on.api.store.clock.offset());
    const at = on.api.store.clock.now() - 3 * dayMs;
    await writeThen(at - dayMs, 'GET /v1/older');
    await writeThen(at, 'GET /v1/wanted');
    for (let n = 0; n < 8; n++) await write(15_000);
    const day = new Date(at).toISOString().slice(0, 10);
    const { requests, next_cursor } = (await ask(`/api/requests?day=${day}`)).json;
    expect(requests.map(({ endpoint }: { endpoint: string }) => endpoint)).to.deep.equal(['GET /v1/wanted']);
    expect(next_cursor).to.equal(null);
    const [, ...rows] = (await ask(`/api/requests.csv?day=${day}`)).text.trimEnd().split('\r\n');
    expect(rows).to.have.length(1);
    expect(rows[0]).to.include('GET /v1/wanted');
  });

  it('are found when they were written hours after midnight, because Redis was away', async () => {
    on.api.store.advance(-on.api.store.clock.offset());
    const now = on.api.store.clock.now();
    const midnight = now - (now % dayMs);
    const { keyId, account: accountId } = on.caller;
    const log = openRequestLog(on.api.store, 1_000, aLog().log);
    const times = { late: midnight - 1, earlier: midnight - 2, now };
    for (const [name, at] of Object.entries(times)) log.add({ keyId, accountId }, { ...freeLine, at, endpoint: name });
    await log.close();
    const namesOf = async (query: string) =>
      (await ask(`/api/requests?${query}`)).json.requests.map(({ endpoint }: { endpoint: string }) => endpoint);
    expect(await namesOf(`day=${new Date(midnight - 1).toISOString().slice(0, 10)}`)).to.deep.equal([
      'earlier',
      'late',
    ]);
    expect(await namesOf('text=192.0.2.1')).to.deep.equal(['now', 'earlier', 'late']);
  });

  it('are none for a day before 1970', async () => {
    on.api.store.advance(-on.api.store.clock.offset());
    for (const day of ['1969-12-29', '0000-01-01'])
      expect((await ask(`/api/requests?day=${day}`)).json, day).to.deep.equal({ requests: [], next_cursor: null });
  });
});

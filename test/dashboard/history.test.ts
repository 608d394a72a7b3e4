import { expect } from 'chai';
import { archiveDays } from '../../src/archive/archive-days.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import type { DashboardCall } from '../../src/dashboard/dashboard-app.ts';
import { moneyRoutes } from '../../src/dashboard/money-routes.ts';
import { readKey } from '../../src/model/api-key.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import { type Dashboard, eachWithDashboard } from '../support/browser-session.ts';
import { freeLine } from '../support/free-line.ts';
import type { Json } from '../support/json.ts';
import { anotherKey, aPlan } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { putDeliveries } from '../support/webhooks.ts';

const day = 86_400_000;

describe('the history on the dashboard', () => {
  let api: Dashboard['api'];
  let caller: Dashboard['caller'];
  let owner: Dashboard['owner'];
  let signedIn: Dashboard['signedIn'];
  eachWithDashboard((dashboard) => {
    ({ api, caller, owner, signedIn } = dashboard);
  });

  /** Writes lines of a key, one a millisecond, in order. */
  const write = async (key: { keyId: string }, count: number, from = 0) => {
    const log = openRequestLog(api.store, 1_000_000, aLog().log);
    for (let n = from; n < from + count; n++) {
      const at = api.store.clock.now();
      const status = n % 10 === 0 ? 500 : 200;
      log.add(
        { ...key, accountId: caller.account },
        { ...freeLine, at, endpoint: `GET /v1/${n}`, status, duration_ms: n },
      );
    }
    await log.close();
  };
  /** Every line that paging gives, as the number in its endpoint. */
  const readAll = async (query: string) => {
    const found: number[] = [];
    let pages = 0;
    for (let cursor = ''; ; pages++) {
      const { status, json } = await owner.ask('GET', `/api/requests?${query}${cursor && `&cursor=${cursor}`}`);
      expect(status).to.equal(200);
      found.push(...json.requests.map(({ duration_ms }: { duration_ms: number }) => duration_ms));
      if (json.next_cursor === null) return { found, pages: pages + 1 };
      cursor = json.next_cursor;
    }
  };
  const numbers = (from: number, count: number) => Array.from({ length: count }, (_, n) => from + n);

  it('pages through the lines of several keys, archived days included, each line once and none left out', async () => {
    const other = readKey(await anotherKey(api.store, caller.account))!;
    await write(caller, 45);
    await write(other, 45, 45);
    api.store.advance(3 * day);
    const metrics = makeMetrics();
    const lifetimes = { job: 30 * day };
    await archiveDays({
      store: api.store,
      objects: api.objects,
      lifetimes,
      goOn: () => true,
      metrics,
      log: aLog().log,
    });
    await write(caller, 15, 90);
    const { found, pages } = await readAll('limit=10');
    expect(found.toSorted((a, b) => a - b)).to.deep.equal(numbers(0, 105));
    expect(found.slice(0, 15).toSorted((a, b) => a - b)).to.deep.equal(numbers(90, 15));
    expect(pages).to.equal(11);
  });

  it('filters by key, status, day and text', async () => {
    api.store.advanceToNoon();
    await write(caller, 30);
    const today = new Date(api.store.clock.now()).toISOString().slice(0, 10);
    const failed = numbers(0, 30).filter((n) => n % 10 === 0);
    expect((await readAll('status=5xx&limit=2')).found.toSorted((a, b) => a - b)).to.deep.equal(failed);
    expect((await readAll('status=500')).found).to.have.length(3);
    expect((await readAll(`key=k${caller.keyId}&day=${today}`)).found).to.have.length(30);
    expect((await readAll('key=none')).found).to.deep.equal([]);
    expect((await readAll('text=V1/29')).found).to.deep.equal([29]);
    for (const query of ['limit=0', 'limit=x', 'cursor=x']) {
      expect((await owner.ask('GET', `/api/requests?${query}`)).status, query).to.equal(400);
    }
  });

  it('writes the lines as CSV, in which no cell is a formula', async () => {
    const { json } = await owner.ask('POST', '/api/keys', { alias: '=1+1, "x"' });
    await write(readKey(json.key)!, 2);
    const { text, headers } = await owner.ask('GET', '/api/requests.csv');
    expect(headers.get('content-disposition')).to.equal('attachment; filename="requests.csv"');
    const [head, ...lines] = text.trimEnd().split('\r\n');
    expect(head).to.equal('at,endpoint,status,duration_ms,ip,credits,key');
    expect(lines).to.have.length(2);
    for (const line of lines) expect(line.endsWith(`,0,"'=1+1, ""x"""`)).to.equal(true, line);
  });

  it('says at the end of a CSV that older lines are left out, and nothing where it has all', async () => {
    await write(caller, 10_001);
    await write(caller, 10_000, 10_001);
    const newest = (await owner.ask('GET', '/api/requests.csv')).text.trimEnd().split('\r\n');
    expect(newest).to.have.length(1 + 20_000 + 1);
    expect(newest.at(-1)).to.match(/^"?Older lines are left out: choose a key, a status or a day"?,{6}$/);
    const [, ...failed] = (await owner.ask('GET', '/api/requests.csv?status=500')).text.trimEnd().split('\r\n');
    expect(failed).to.have.length(2001);
    expect(failed.every((line) => line.includes(',500,'))).to.equal(true);
  });

  it('shows jobs and one job with its timeline; a hostile title is data', async () => {
    const { json } = await owner.ask('POST', '/api/jobs', {
      query: 'https://example.com/film.mp4',
      video_quality: '720p',
    });
    const { jobs } = (await owner.ask('GET', '/api/jobs')).json;
    expect(jobs.map(({ id }: { id: string }) => id)).to.deep.equal([json.job_id]);
    const shown = await owner.ask('GET', `/api/jobs/${json.job_id}`);
    expect(shown.headers.get('content-type')).to.equal('application/json; charset=utf-8');
    expect(shown.json.timeline[0]).to.include({ source: 'job' });
    expect(shown.json.args).to.include({ video_quality: '720p' });
    expect((await owner.ask('DELETE', `/api/jobs/${json.job_id}`)).json.error_code).to.equal('cancelled');
    const again = await owner.ask('POST', `/api/jobs/${json.job_id}/retry`, {});
    expect(again.status).to.equal(202);
    for (const wrong of ['x', '00000000-0000-4000-8000-000000000000', '__proto__']) {
      expect((await owner.ask('GET', `/api/jobs/${wrong}`)).status, wrong).to.equal(404);
    }
    expect((await owner.ask('POST', '/api/jobs', { query: 'ftp://x' })).status).to.equal(400);
    const { keys } = (await owner.ask('GET', '/api/keys')).json;
    expect(keys.map(({ alias }: { alias: string }) => alias)).to.include('dashboard');
  });

  it('pages through the webhooks, all and failed ones', async () => {
    const states = Array.from({ length: 130 }, (_, n) => (n % 2 ? 'failed' : 'delivered'));
    const ids = await putDeliveries(api.store, caller.account, states, api.store.clock.now());
    const ask = async (query: string) => (await owner.ask('GET', `/api/webhooks?${query}`)).json;
    const idsOf = ({ webhooks }: Json) => webhooks.map(({ job }: { job: string }) => job);
    const first = await ask('');
    expect(idsOf(first)).to.deep.equal(ids.toReversed().slice(0, 100));
    const second = await ask(`cursor=${first.next_cursor}`);
    expect([idsOf(second), second.next_cursor]).to.deep.equal([ids.toReversed().slice(100), null]);
    const failed = await ask('failed=true');
    expect(idsOf(failed)).to.deep.equal(ids.filter((_, n) => n % 2).toReversed());
    expect(failed.next_cursor).to.equal(null);
    expect((await owner.ask('GET', '/api/webhooks?cursor=wrong')).status).to.equal(400);
  });

  it('streams the newest jobs at each change', async () => {
    const stream = await fetch(`${api.dashboardUrl}/api/jobs/events`, { headers: { cookie: owner.cookie } });
    const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
    let said = '';
    const hear = async (words: string) => {
      while (!said.includes(words)) said += (await reader.read()).value ?? '';
    };
    await hear('"jobs":[]');
    const { json } = await owner.ask('POST', '/api/jobs', { query: 'https://example.com/film.mp4' });
    await hear(json.job_id);
    await reader.cancel();
    const gone = new AbortController();
    const left = fetch(`${api.dashboardUrl}/api/jobs/events`, {
      headers: { cookie: owner.cookie },
      signal: gone.signal,
    });
    gone.abort();
    await left.catch(() => undefined);
    const opensOne = async () => {
      const { status, body } = await fetch(`${api.dashboardUrl}/api/jobs/events`, {
        headers: { cookie: owner.cookie },
      });
      await body?.cancel();
      return status === 200;
    };
    // An account has at most 50 streams: that of a page that has left is counted until the service notices, and otherwise for a minute.
    for (let n = 0; n < 61; n++) await until(opensOne, 5, `stream ${n} is opened`);
  });

  it('tells the money in the numbers of the public API', async () => {
    const { json } = await owner.ask('GET', '/api/billing');
    const { api_key: _, ...usage } = (await api.get('/v1/usage', caller.key)).json as { api_key: object };
    expect(json.usage).to.deep.equal(usage);
    expect(json.ledger[0]).to.include({ kind: 'grant', amount: 100 });
  });

  it('counts calls, credits used and credits left of each of the last 30 days', async () => {
    const call = () => api.get('/v1/media/metadata', caller.key, { query: 'https://example.com/a' });
    const before = (await owner.ask('GET', '/api/billing')).json.usage.remaining as number;
    await call();
    await call();
    api.store.advance(2 * day);
    await call();
    // Lines of calls are written shortly after their answer.
    const days = await until(
      async () => {
        const browser = await signedIn(caller.account, 'viewer');
        const { json } = await browser.ask('GET', '/api/requests');
        return json.requests.length === 3 && (await browser.ask('GET', '/api/history')).json.days;
      },
      10,
      'three lines in the request log',
    );
    expect(days).to.have.length(30);
    const shown = days
      .slice(-4)
      .map((one: Record<string, number>) => [one.calls, one.credits, one.completed, one.remaining]);
    expect(shown).to.deep.equal([
      [0, 0, 0, 0],
      [2, 2, 2, before - 2],
      [0, 0, 0, before - 2],
      [1, 1, 1, before - 3],
    ]);
  });

  it('counts a larger quota of the plan as left from today on, also before it is booked by a charge', async () => {
    const before = (await owner.ask('GET', '/api/billing')).json.usage.remaining as number;
    await aPlan(api.store, 'growing', { quota: 10 });
    await setAccount(api.store, caller.account, { plan: 'growing' });
    api.store.advance(2 * day);
    await aPlan(api.store, 'growing', { quota: 50 });
    const { days } = (await (await signedIn(caller.account, 'viewer')).ask('GET', '/api/history')).json;
    const shown = days.slice(-4).map((one: Record<string, number>) => one.remaining);
    expect(shown).to.deep.equal([0, before + 10, before + 10, before + 50]);
  });

  it('has the lapse and the grant of a billing period that ends at the moment of reading, in the ledger and in the chart', async () => {
    const readAfterPeriod = async (path: string) => {
      const { account, plan } = await api.addCaller({ quota: 20, credits: 0 });
      await aPlan(api.store, plan, { quota: 1 });
      api.store.advance(40 * day);
      return (await (await signedIn(account, 'viewer')).ask('GET', path)).json;
    };
    const { usage, ledger } = await readAfterPeriod('/api/billing');
    expect(usage.remaining).to.equal(1);
    const moved = ledger.map(({ kind, amount }: Json) => `${kind} ${amount}`);
    expect(moved).to.deep.equal(['grant 1', 'lapse 20', 'grant 20']);
    const { days } = await readAfterPeriod('/api/history');
    expect(days.slice(-2).map(({ remaining }: Json) => remaining)).to.deep.equal([20, 1]);
  });

  it('has the lapse and the grant of a billing period that another reader ends just before the balances are read', async () => {
    const { account, plan } = await api.addCaller({ quota: 20, credits: 0 });
    await aPlan(api.store, plan, { quota: 1 });
    api.store.advance(40 * day);
    const { connection } = api.store;
    let other: Promise<unknown> | undefined;
    const late: typeof connection.eval = async (...asked) => {
      other ??= readSnapshot(api.store, account);
      await other;
      return connection.eval(...asked);
    };
    const store = { ...api.store, connection: { ...connection, eval: late } };
    const [billing] = moneyRoutes(store, () => expect.fail('nothing is archived'), false);
    const answer = await billing!.handle({ accountId: account } as DashboardCall);
    const { usage, ledger } = answer!.body as Json;
    expect(usage.remaining).to.equal(1);
    expect(ledger.map(({ kind }: Json) => kind)).to.deep.equal(['grant', 'lapse', 'grant']);
  });

  it('tells the same to all who read at the moment at which a billing period ends', async () => {
    const { account, plan } = await api.addCaller({ quota: 20, credits: 0 });
    await aPlan(api.store, plan, { quota: 1 });
    api.store.advance(40 * day);
    const browser = await signedIn(account, 'viewer');
    const read = async () => (await browser.ask('GET', '/api/billing')).json;
    const answers = await Promise.all(Array.from({ length: 8 }, read));
    for (const answer of answers) expect(answer).to.deep.equal(answers[0]);
    expect(answers[0].usage.period).to.deep.equal((await read()).usage.period);
  });

  it('counts the calls of each of the last 24 hours, of every key, and no older ones', async () => {
    const hour = 3_600_000;
    // Not at the edge of an hour.
    api.store.advance(hour - (api.store.clock.now() % hour) + hour / 2);
    const other = readKey(await anotherKey(api.store, caller.account))!;
    await write(caller, 4);
    api.store.advance(22 * hour);
    await write(caller, 3);
    await write(other, 2);
    api.store.advance(2 * hour);
    await write(other, 1);
    const { hours } = (await owner.ask('GET', '/api/history')).json;
    expect(hours).to.have.length(24);
    expect(hours.map(({ calls }: { calls: number }) => calls)).to.deep.equal([...Array(21).fill(0), 5, 0, 1]);
    expect(Date.parse(hours.at(-1).hour)).to.be.within(api.store.clock.now() - hour, api.store.clock.now());
  });

  it('says what was paid this month, and lets an owner switch the alerts off', async () => {
    const { json } = await owner.ask('GET', '/api/billing');
    expect([json.spent, json.alerts]).to.deep.equal([[], true]);
    expect((await owner.ask('PUT', '/api/alerts', { enabled: 'no' })).status).to.equal(400);
    expect((await owner.ask('PUT', '/api/alerts', { enabled: false })).json).to.deep.equal({ enabled: false });
    expect((await owner.ask('GET', '/api/billing')).json.alerts).to.equal(false);
  });
});

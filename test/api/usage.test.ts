import { expect } from 'chai';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film } from '../support/calls.ts';
import { endJob, runJob } from '../support/job-steps.ts';
import { aPack, aPlan, failed } from '../support/record.ts';

const aliases = ['/v1/usage', '/api/v1/usage', '/api/usage'];

describe('usage', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());

  const usage = async (caller: ApiCaller, params = {}) => (await api.get('/v1/usage', caller.key, params)).json;
  const pay = async (caller: ApiCaller) => (await api.get('/v1/media/metadata', caller.key, { query: film })).status;
  const submit = async (caller: ApiCaller) =>
    (await api.get('/v1/video/download', caller.key, { query: film })).json.job_id;

  for (const path of aliases) {
    it(`operation-5 usage-*: GET ${path} answers the whole snapshot`, async () => {
      const caller = await api.addCaller({ quota: 10, perMinute: 900, perSecond: 30, packs: [3, 5], credits: 7 });
      const expires = Date.UTC(2033, 0, 2, 23, 59, 59, 999);
      const quotas = { total: 100, daily: 5 };
      await setKey(api.store, caller.account, `k${caller.keyId}`, { expires, quotas, category: 'production' });
      expect(await pay(caller)).to.equal(200);
      const { status, json } = await api.get(path, caller.key);
      expect(status).to.equal(200);
      expect(json.renewal_date).to.equal(json.period.end);
      expect(Date.parse(json.period.end) - Date.parse(json.period.start)).to.be.within(
        28 * 86_400_000,
        31 * 86_400_000,
      );
      const [first, second] = json.packs.items;
      expect([first.title, first.id === second.id]).to.deep.equal(['Pack 0', false]);
      const whole = { used: 0, percent_used: 0, exhausted: false };
      const items = [
        { id: first.id, title: 'Pack 0', purchased_at: '2026-01-01T00:00:00.000Z', total: 3, remaining: 3, ...whole },
        { id: second.id, title: 'Pack 1', purchased_at: '2026-01-02T00:00:00.000Z', total: 5, remaining: 5, ...whole },
      ];
      expect(json).to.deep.equal({
        remaining: 24,
        total_used: 1,
        held: 0,
        renewal_date: json.period.end,
        period: json.period,
        subscription: { total: 18, used: 1, remaining: 17, percent_used: 5.56 },
        packs: {
          count: 2,
          exhausted_count: 0,
          all_exhausted: false,
          total: 8,
          used: 0,
          remaining: 8,
          percent_used: 0,
          current_index: 0,
          current: items[0],
          items,
        },
        credits: { given: 7, consumed: 0, remaining: 7, percent_used: 0 },
        rate_limit: { per_minute: 900, per_second: 30 },
        account: { name: caller.slug, slug: caller.slug },
        api_key: {
          alias: `k${caller.keyId}`,
          active: true,
          category: 'production',
          expires: '2033-01-02T23:59:59.999Z',
          quotas: { total: 100, monthly: null, weekly: null, daily: 5 },
        },
      });
    });
  }

  it('D45: without a plan shows the packs as subscription, the calendar month as period, and no renewal', async () => {
    const caller = await api.addCaller({ credits: 0, packs: [4] });
    // No month ends before the call.
    api.store.advanceToNoon();
    const now = new Date(api.store.clock.now());
    const month = (n: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + n)).toISOString();
    expect(await usage(caller)).to.deep.include({
      renewal_date: null,
      period: { start: month(0), end: month(1) },
      subscription: { total: 4, used: 0, remaining: 4, percent_used: 0 },
      rate_limit: { per_minute: null, per_second: null },
    });
    const empty = await api.addCaller({ credits: 0 });
    expect(await usage(empty)).to.deep.include({
      remaining: 0,
      packs: null,
      subscription: { total: 0, used: 0, remaining: 0, percent_used: 0 },
      credits: { given: 0, consumed: 0, remaining: 0, percent_used: 0 },
    });
  });

  it('billing-8 packs-order rule-3 D42 D46 D47: quota, packs by purchase, then credits are drawn, as every number shows; then 402', async () => {
    const caller = await api.addCaller({ quota: 1, credits: 1 });
    await aPack(api.store, caller.account, 2, 5);
    await aPack(api.store, caller.account, 1, 3);
    const seen = [];
    for (let times = 0; times < 5; times++) {
      expect(await pay(caller)).to.equal(200);
      const { remaining, total_used, subscription, packs, credits } = await usage(caller);
      const current = packs.current?.title ?? null;
      seen.push([remaining, total_used, subscription.used, packs.used, credits.consumed, packs.current_index, current]);
    }
    expect(seen).to.deep.equal([
      [4, 1, 1, 0, 0, 0, 'Pack 3'],
      [3, 2, 2, 1, 0, 1, 'Pack 5'],
      [2, 3, 3, 2, 0, 1, 'Pack 5'],
      [1, 4, 4, 3, 0, 2, null],
      [0, 5, 4, 3, 1, 2, null],
    ]);
    const { packs } = await usage(caller);
    expect(packs).to.deep.include({ count: 2, exhausted_count: 2, all_exhausted: true, percent_used: 100 });
    expect(packs.items.map(({ exhausted }: { exhausted: boolean }) => exhausted)).to.deep.equal([true, true]);
    const refused = await api.get('/v1/media/metadata', caller.key, { query: film });
    expectRefused(refused, 402, 'payment_required', 'Payment required');
    await aPack(api.store, caller.account, 1);
    expect(await pay(caller)).to.equal(200);
  });

  for (const engine of ['video', 'audio'] as const) {
    it(`price-audio price-video billing-3 D41: a download of ${engine} holds one credit while it runs, success charges it, failure gives it back`, async () => {
      const caller = await api.addCaller({ credits: 1 });
      const download = () => api.get(`/v1/${engine}/download`, caller.key, { query: film });
      const first = (await download()).json.job_id;
      await runJob(api.store, first);
      expect(await usage(caller)).to.include({ remaining: 1, held: 1, total_used: 0 });
      expectRefused(await download(), 402, 'payment_required', 'Payment required');
      await endJob(api.store, first, failed);
      expect(await usage(caller)).to.include({ remaining: 1, held: 0, total_used: 0 });
      await endJob(api.store, (await download()).json.job_id);
      expect(await usage(caller)).to.include({ remaining: 0, held: 0, total_used: 1 });
    });
  }

  it('D41: on one credit one of fifty calls at once is accepted', async () => {
    const caller = await api.addCaller({ credits: 1 });
    const calls = Array.from({ length: 50 }, () => api.get('/v1/video/download', caller.key, { query: film }));
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(statuses.sort()).to.deep.equal([202, ...Array(49).fill(402)]);
    expect(await usage(caller)).to.include({ remaining: 1, held: 1 });
  });

  it('price-jobs price-usage price-stats billing-4 billing-6: polls, lists, usage, stats and refused calls are free', async () => {
    const caller = await api.addCaller({ stats: true });
    const id = await submit(caller);
    for (const path of ['/v1/usage', '/v1/jobs', `/v1/jobs/${id}`, '/v1/stats?engine=video', '/v1/video/download']) {
      for (let times = 0; times < 3; times++) await api.get(path, caller.key);
    }
    await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
    expect(await usage(caller)).to.include({ remaining: 100, held: 0, total_used: 0 });
  });

  it('usage-reduced D48 D80: the reduced view shows plan and remaining as text, and none without a plan', async () => {
    const [caller, free] = [await api.addCaller({ quota: 40, credits: 2 }), await api.addCaller({ credits: 3 })];
    expect(await usage(caller, { view: 'reduced' })).to.deep.equal({ plan: caller.plan, remaining: '42' });
    expect(await usage(free, { view: 'reduced' })).to.deep.equal({ plan: 'none', remaining: '3' });
    expect(await usage(free, { view: 'reduced', fields: 'plan' })).to.deep.equal({ plan: 'none' });
    expect(await usage(caller, { view: 'full' })).to.deep.equal(await usage(caller));
    const wrong = await api.get('/v1/usage', caller.key, { view: 'Reduced' });
    expectRefused(wrong, 400, 'bad_request', 'Bad Request: view must be one of full, reduced');
  });

  it('D80: shows more used than a lowered quota as it is, with nothing left and 100 percent', async () => {
    const caller = await api.addCaller({ quota: 3, credits: 0 });
    await pay(caller);
    await pay(caller);
    await aPlan(api.store, caller.plan, { quota: 1 });
    expect((await usage(caller)).subscription).to.deep.equal({ total: 1, used: 2, remaining: 0, percent_used: 100 });
    expect(await usage(caller)).to.include({ remaining: 0, total_used: 2 });
  });

  it('usage-period D50: the next period begins by itself with nothing used; what is left of the quota lapses, packs and credits stay', async () => {
    const caller = await api.addCaller({ quota: 2, packs: [1], credits: 1 });
    await pay(caller);
    const { period } = await usage(caller);
    api.store.advance(Date.parse(period.end) - api.store.clock.now());
    const next = await usage(caller);
    expect(next).to.include({ remaining: 4, total_used: 0 });
    expect(next.period.start).to.equal(period.end);
    expect(next.subscription).to.deep.include({ total: 3, used: 0 });
  });
});

import { globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { makeAuthenticator } from '../support/authenticator.ts';
import { type BrowserSession, invited, openBrowser, signedInAt } from '../support/browser-session.ts';
import { paidEvent, sendEvent } from '../support/paid-event.ts';
import { anotherKey } from '../support/record.ts';
import { RedisCalls } from '../support/redis-calls.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';
import { until } from '../support/until.ts';

/** Most calls of Redis for what a page shows: the session, names of what the account has, and these. */
const maxShown = 3;
/** Most calls of Redis for what a person changes. */
const maxChanged = 8;
const webhook_url = 'https://hooks.example.com/trawl';
const film = 'https://example.com/film.mp4';
/** One lasts as long as its page, the others need a provider. */
const outside = ['GET /api/jobs/events', 'GET /api/sign-in/openid', 'GET /api/sign-in/openid/return'];
const shownWhole = [
  ...['audit', 'billing', 'history', 'jobs', 'keys', 'offers', 'passkeys', 'people', 'requests', 'requests.csv'],
  ...['jobs/ended', 'session', 'sessions', 'sign-in', 'topup', 'webhooks'],
];
type Asked = readonly [route: string, path: string, body?: unknown, browser?: BrowserSession];

describe('the calls of Redis for a page of the dashboard', () => {
  const calls = new RedisCalls();
  let api: TestApi;
  let stripe: StripeStandIn;
  let caller: ApiCaller;
  let owner: BrowserSession;
  before(async () => {
    stripe = await startStripe();
    calls.begin();
    const stand = {
      TRAWL_STRIPE_KEY: 'sk_test_1',
      TRAWL_STRIPE_URL: stripe.url,
      TRAWL_STRIPE_WEBHOOK_SECRET: 'whsec_test',
    };
    const env = {
      TRAWL_DASHBOARD_URL: 'http://localhost:0',
      ...stand,
      TRAWL_SMTP_URL: 'smtp://localhost:1',
      TRAWL_MAIL_FROM: 'a@example.com',
    };
    api = await startApi(env, (parts) => {
      return { ...parts, store: { ...parts.store, connection: calls.through(parts.store.connection) } };
    });
    await fill();
  });
  after(async () => {
    calls.end();
    await api.stop();
    await stripe.stop();
  });

  const signedIn = (account: string, role: Parameters<typeof invited>[2] = 'owner') =>
    signedInAt(api, account, role, `${role}@example.com`);

  /** An account that has something on every page. */
  const fill = async () => {
    caller = await api.addCaller({ quota: 50 });
    owner = await signedIn(caller.account);
    const pack = { id: 'p', title: 'Small', total: 5, purchased_at: api.store.clock.now() };
    await addPack(api.store, caller.account, pack);
    await setAccount(api.store, caller.account, { name: 'Acme Films' });
    for (let n = 0; n < 12; n++) await anotherKey(api.store, caller.account);
    for (let n = 0; n < 25; n++) {
      const { json } = await api.call('GET', '/v1/video/download', {
        key: caller.key,
        params: { query: film, webhook_url },
      });
      if (n % 2 === 0) await owner.ask('DELETE', `/api/jobs/${json.job_id}`);
    }
    await sendEvent(api.dashboardUrl, 'whsec_test', paidEvent(caller.account, 'bought'));
    await signedIn(caller.account, 'viewer');
    const hasLines = async () => (await owner.ask('GET', '/api/requests')).json.requests.length >= 25;
    await until(hasLines, 10, 'the lines of the calls are written');
  };

  const aTest = async () => (await owner.ask('POST', '/api/webhooks/tests', { url: webhook_url })).json.test;

  /** What a request cost, by the method and the path that it had. */
  const costOf = async (method: string, path: string, body?: unknown, browser = owner) => {
    const before = calls.requests.length;
    const answer = await browser.ask(method, path, body);
    const own = calls.requests.slice(before).find((one) => one.method === method && one.path === path.split('?')[0]);
    // A webhook that is still due is read all the same.
    const most = path.endsWith('/replay') ? 409 : 299;
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.be.within(200, most);
    return { cost: own!.calls, answer };
  };

  /** Asks each route, and returns the most that it cost. */
  const costsOf = async (asked: readonly Asked[]) => {
    const costs: Record<string, number> = {};
    for (const [route, path, body, browser] of asked) {
      const ask = async () => (await costOf(route.split(' ')[0]!, path, body, browser)).cost;
      const first = await ask();
      // What happens meanwhile may cost a call more; the history is kept for a while, so a second try of it tells nothing.
      const isRepeatable = route.startsWith('GET') && route !== 'GET /api/history';
      const cost = first > maxShown && isRepeatable ? await ask() : first;
      costs[route] = Math.max(costs[route] ?? 0, cost);
    }
    return costs;
  };
  const expectAll = (costs: Readonly<Record<string, number>>, most: number, left: (route: string) => boolean) => {
    for (const [route, cost] of Object.entries(costs)) expect(cost, route).to.be.at.most(most);
    expect(Object.keys(costs).sort()).to.deep.equal(
      declaredRoutes().filter((route) => !outside.includes(route) && left(route)),
    );
  };

  it(`are at most ${maxShown} at every route that shows something`, async () => {
    const { jobs, next_cursor } = (await owner.ask('GET', '/api/jobs?limit=10')).json;
    const byStatus = (wanted: string) => jobs.find(({ status }: { status: string }) => status === wanted).id;
    const [{ id: purchase }] = (await owner.ask('GET', '/api/billing')).json.purchases;
    const lines = (await owner.ask('GET', '/api/requests?limit=10')).json.next_cursor;
    const costs = await costsOf([
      ...shownWhole.map((page): Asked => [`GET /api/${page}`, `/api/${page}`]),
      ['GET /api/service', '/api/service', undefined, await signedIn('', 'operator')],
      ['GET /api/jobs', `/api/jobs?limit=10&cursor=${next_cursor}`],
      ['GET /api/jobs', '/api/jobs?status=QueuedJob'],
      ['GET /api/jobs', '/api/jobs?status=Error'],
      ['GET /api/jobs/:id', `/api/jobs/${byStatus('QueuedJob')}`],
      ['GET /api/jobs/:id', `/api/jobs/${byStatus('Error')}`],
      ['GET /api/requests', `/api/requests?limit=10&cursor=${lines}`],
      ['GET /api/requests', '/api/requests?status=5xx&text=none'],
      ['GET /api/webhooks', '/api/webhooks?failed=true'],
      ['GET /api/webhooks/tests/:id', `/api/webhooks/tests/${await aTest()}`],
      ['GET /api/purchases/:id/invoice.pdf', `/api/purchases/${purchase}/invoice.pdf`],
    ]);
    expectAll(costs, maxShown, (route) => route.startsWith('GET'));
  });

  it(`are at most ${maxChanged} at every route that changes something`, async () => {
    const { jobs } = (await owner.ask('GET', '/api/jobs?limit=10')).json;
    const byStatus = (wanted: string) => jobs.find(({ status }: { status: string }) => status === wanted).id;
    const [stranger, other] = [openBrowser(api.dashboardUrl), await signedIn(caller.account)];
    const { sessions } = (await other.ask('GET', '/api/sessions')).json;
    const { name } = sessions.find(({ current }: { current: boolean }) => current);
    const passkey = makeAuthenticator(api.dashboardUrl);
    const begun = await costOf('POST', '/api/passkeys/begin', {});
    const costs = await costsOf([
      ['POST /api/passkeys', '/api/passkeys', { name: 'laptop', response: passkey.create(begun.answer.json) }],
      ['PATCH /api/passkeys/:id', `/api/passkeys/${passkey.id}`, { name: 'phone' }],
      ['DELETE /api/sessions/:name', `/api/sessions/${name}`],
      ['POST /api/password', '/api/password', { password: 'correct horse' }],
      ['DELETE /api/passkeys/:id', `/api/passkeys/${passkey.id}`],
      ['POST /api/session/account', '/api/session/account', { account: caller.slug }],
      ['POST /api/keys', '/api/keys', { alias: 'first', quotas: { daily: 5 } }],
      ['PATCH /api/keys/:alias', '/api/keys/first', { active: false }],
      ['POST /api/keys/:alias/rotate', '/api/keys/first/rotate', {}],
      ['DELETE /api/keys/:alias', '/api/keys/first'],
      ['POST /api/metadata', '/api/metadata', { query: film }],
      ['POST /api/jobs', '/api/jobs', { query: film }],
      ['DELETE /api/jobs/:id', `/api/jobs/${byStatus('QueuedJob')}`],
      ['POST /api/jobs/:id/retry', `/api/jobs/${byStatus('Error')}/retry`, {}],
      ['POST /api/webhooks/:id/replay', `/api/webhooks/${byStatus('Error')}/replay`, {}],
      ['POST /api/webhooks/tests', '/api/webhooks/tests', { job: byStatus('Error') }],
      ['POST /api/webhooks/tests', '/api/webhooks/tests', { url: webhook_url }],
      ['POST /api/webhooks/secret', '/api/webhooks/secret', {}],
      ['DELETE /api/webhooks/secret', '/api/webhooks/secret'],
      ['PUT /api/alerts', '/api/alerts', { enabled: false }],
      ['PUT /api/topup', '/api/topup', { threshold_percent: 20 }],
      ['POST /api/checkout', '/api/checkout', {}],
      ['POST /api/people', '/api/people', { email: 'b@example.com', role: 'viewer' }],
      ['DELETE /api/people/:email', '/api/people/b@example.com'],
      ['POST /api/sign-in/passkey', '/api/sign-in/passkey', {}, stranger],
      ['POST /api/sign-in', '/api/sign-in', { token: await invited(api.store, caller.account) }, stranger],
      ['POST /api/sign-in/forgotten', '/api/sign-in/forgotten', { email: 'a@example.com' }, stranger],
      ['POST /api/sign-out', '/api/sign-out', {}],
    ]);
    const all = { ...costs, 'POST /api/passkeys/begin': begun.cost };
    expectAll(all, maxChanged, (route) => !route.startsWith('GET'));
  });
});

/** Returns every route that the files of the dashboard declare, in order. */
function declaredRoutes(): string[] {
  const text = globSync('src/dashboard/*.ts')
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n');
  const found = text.matchAll(/\b(?:read|change|open)Route\(\s*(?:'([A-Z]+)',\s*)?'(\/[^']+)'/g);
  return [...new Set([...found].map(([, method = 'GET', path]) => `${method} ${path}`))].sort();
}

import { expect } from 'chai';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { removePerson } from '../../src/store/people/remove-person.ts';
import { startApi } from '../support/api.ts';
import {
  byPassword,
  type Dashboard,
  eachWithDashboard,
  invited,
  openBrowser,
  signedInAt,
} from '../support/browser-session.ts';
import { contentOf } from '../support/script-faults.ts';

const lists = [
  'session',
  'sessions',
  'passkeys',
  'keys',
  'requests',
  'jobs',
  'billing',
  'history',
  'topup',
  'offers',
  'people',
  'webhooks',
];
const changes = [
  ['POST', '/api/keys', 'keys', { alias: 'new' }],
  ['PATCH', '/api/keys/x', 'keys', {}],
  ['DELETE', '/api/keys/x', 'keys', undefined],
  ['POST', '/api/keys/x/rotate', 'keys', {}],
  ['POST', '/api/jobs', 'jobs', { query: 'https://example.com/a' }],
  ['POST', '/api/webhooks/secret', 'webhooks', {}],
  ['PUT', '/api/topup', 'money', {}],
  ['PUT', '/api/alerts', 'money', { enabled: true }],
  ['POST', '/api/checkout', 'money', {}],
  ['POST', '/api/people', 'people', { email: 'b@example.com', role: 'viewer' }],
  ['DELETE', '/api/people/b@example.com', 'people', undefined],
] as const;
const minute = 60_000;

describe('the sign-in to the dashboard', () => {
  let api: Dashboard['api'];
  let caller: Dashboard['caller'];
  let owner: Dashboard['owner'];
  let signedIn: Dashboard['signedIn'];
  eachWithDashboard((dashboard) => {
    ({ api, caller, owner, signedIn } = dashboard);
  });

  it('by a link works once, for 72 hours, and keeps only a hash of its secret', async () => {
    const secret = await invited(api.store, caller.account, 'member', 'once@example.com');
    const browser = openBrowser(api.dashboardUrl);
    const isKept = async (text: string) => JSON.stringify(await contentOf(api.store)).includes(text);
    expect(await isKept(secret.split('.')[1]!)).to.equal(false);
    const answer = await browser.signIn(secret);
    expect(await isKept(browser.cookie.split('.')[1]!)).to.equal(false);
    expect(await isKept('once@example.com')).to.equal(true);
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('set-cookie')).to.match(/^trawl=.+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
    expect((await browser.ask('GET', '/api/session')).json).to.deep.include({
      user: {
        email: 'once@example.com',
        operator: false,
        has_password: false,
        has_passkey: false,
        has_identity: false,
      },
      account: { slug: caller.slug, name: caller.slug },
      role: 'member',
    });
    expect((await openBrowser(api.dashboardUrl).signIn(secret)).status).to.equal(401);
    const late = await invited(api.store, caller.account);
    api.store.advance(73 * 60 * minute);
    const refused = await openBrowser(api.dashboardUrl).signIn(late);
    expect([refused.status, refused.headers.get('x-error-code')]).to.deep.equal([401, 'sign_in_failed']);
  });

  it('is needed by every route, and an API key opens none', async () => {
    const stranger = openBrowser(api.dashboardUrl);
    for (const list of lists) {
      for (const headers of [{}, { 'x-api-key': caller.key }] as Record<string, string>[]) {
        expect((await stranger.ask('GET', `/api/${list}`, undefined, { headers })).status, list).to.equal(401);
      }
    }
    for (const [method, path, , body] of changes) {
      expect((await stranger.ask(method, path, body)).status, path).to.equal(401);
    }
  });

  it('gives a new session, whatever cookie the browser had, and ends the old one', async () => {
    const victim = openBrowser(api.dashboardUrl);
    victim.cookie = owner.cookie;
    const before = owner.cookie;
    await victim.signIn(await invited(api.store, caller.account));
    expect(victim.cookie).not.to.equal(before);
    const again = openBrowser(api.dashboardUrl);
    const email = 'twice@example.com';
    await again.signIn(await invited(api.store, caller.account, 'owner', email));
    const first = again.cookie;
    await again.signIn(await invited(api.store, caller.account, 'owner', email));
    const thief = openBrowser(api.dashboardUrl);
    thief.cookie = first;
    expect((await thief.ask('GET', '/api/session')).status).to.equal(401);
  });

  it('lets through no change without the own origin and the own token', async () => {
    const other = await signedIn((await api.addCaller()).account, 'owner');
    const before = (await owner.ask('GET', '/api/keys')).text;
    const wrong = [
      { csrf: null },
      { csrf: 'x'.repeat(43) },
      { csrf: other.csrf },
      { origin: null },
      { origin: 'null' },
      { origin: 'https://evil.example' },
      { origin: `${api.dashboardUrl}.evil.example` },
      { origin: api.url },
    ];
    for (const options of wrong) {
      for (const [method, path, , body] of changes) {
        const { status } = await owner.ask(method, path, body, options);
        expect(status, `${method} ${path} ${JSON.stringify(options)}`).to.equal(403);
      }
    }
    expect((await owner.ask('GET', '/api/keys')).text).to.equal(before);
  });

  it('D87: a member changes keys, jobs and webhooks, a viewer and an operator nothing, and all of them read', async () => {
    const may: Record<string, readonly string[]> = {
      owner: ['keys', 'jobs', 'webhooks', 'money', 'people'],
      member: ['keys', 'jobs', 'webhooks'],
      viewer: [],
      operator: [],
    };
    for (const role of ['owner', 'member', 'viewer', 'operator'] as const) {
      const browser = await signedIn(role === 'operator' ? '' : caller.account, role);
      if (role === 'operator') await browser.ask('POST', '/api/session/account', { account: caller.slug });
      for (const list of lists) expect((await browser.ask('GET', `/api/${list}`)).status, list).to.equal(200);
      for (const [method, path, subject, body] of changes) {
        const { status } = await browser.ask(method, path, body);
        expect(status === 403, `${role} ${method} ${path}: ${status}`).to.equal(!may[role]!.includes(subject));
      }
    }
  });

  it('shows nothing of another account', async () => {
    const other = await api.addCaller();
    const started = await api.get('/v1/video/download', other.key, { query: 'https://example.com/film.mp4' });
    const { job_id } = started.json as { job_id: string };
    expect((await owner.ask('GET', `/api/jobs/${job_id}`)).status).to.equal(404);
    expect((await owner.ask('DELETE', `/api/jobs/${job_id}`)).status).to.equal(404);
    expect((await owner.ask('POST', `/api/jobs/${job_id}/retry`, {})).status).to.equal(404);
    const batch = { endpoint: 'video', items: [{ query: 'https://example.com/film.mp4' }] };
    const { batch_id } = (await api.call('POST', '/v1/batches', { key: other.key, body: batch })).json;
    for (const id of [job_id, batch_id]) {
      expect((await owner.ask('POST', `/api/webhooks/${id}/replay`, {})).json.error).to.equal(
        'There is no such job or batch',
      );
    }
    expect((await owner.ask('POST', '/api/session/account', { account: other.slug })).status).to.equal(404);
    expect((await owner.ask('GET', '/api/jobs')).json.jobs).to.deep.equal([]);
  });

  it('ends with the role of the person, with the account, with sign-out and with its time', async () => {
    const email = 'gone@example.com';
    const removed = await signedIn(caller.account, 'member', email);
    await removePerson(api.store, caller.account, email);
    expect((await removed.ask('GET', '/api/session')).status).to.equal(401);
    const left = await signedIn(caller.account, 'member');
    await left.ask('POST', '/api/sign-out', {});
    expect((await left.ask('GET', '/api/session')).status).to.equal(401);
    const late = await signedIn(caller.account, 'member');
    await removeAccount(api.store, caller.account, caller.slug);
    for (const browser of [owner, late]) expect((await browser.ask('GET', '/api/session')).status).to.equal(401);
    const last = await signedIn((await api.addCaller()).account, 'owner');
    api.store.advance(15 * 24 * 60 * minute);
    expect((await last.ask('GET', '/api/session')).status).to.equal(401);
  });

  it('by a password works once one is set, which ends all other sessions and links', async () => {
    const email = 'pass@example.com';
    const [one, other] = [
      await signedIn(caller.account, 'owner', email),
      await signedIn(caller.account, 'owner', email),
    ];
    const link = await invited(api.store, caller.account, 'owner', email);
    expect((await one.ask('POST', '/api/password', { password: 'short' })).status).to.equal(400);
    expect((await one.ask('POST', '/api/password', { password: 'correct horse' })).status).to.equal(200);
    expect((await other.ask('GET', '/api/session')).status).to.equal(401);
    expect((await openBrowser(api.dashboardUrl).signIn(link)).status).to.equal(401);
    expect((await one.ask('GET', '/api/session')).json.user.has_password).to.equal(true);
    expect((await byPassword(openBrowser(api.dashboardUrl), 'PASS@example.com', 'correct horse')).status).to.equal(200);
    expect((await byPassword(openBrowser(api.dashboardUrl), email, 'correct horsf')).status).to.equal(401);
  });

  it('tells nothing of whether a person exists, and takes bad bodies for what they are', async () => {
    const browser = openBrowser(api.dashboardUrl);
    const email = 'real@example.com';
    await invited(api.store, caller.account, 'owner', email);
    const answers = [
      await byPassword(browser, email, 'wrong-one'),
      await byPassword(browser, 'no@example.com', 'wrong-one'),
    ];
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
    for (const body of [
      {},
      { token: 5 },
      { token: { a: 1 } },
      { email: ['a'], password: 'b' },
      { token: 'x'.repeat(10_000) },
    ]) {
      expect((await browser.ask('POST', '/api/sign-in', body)).status, JSON.stringify(body)).to.equal(400);
    }
    const broken = await browser.ask('POST', '/api/sign-in', undefined, {
      headers: { 'content-type': 'application/json' },
    });
    expect(broken.status).to.equal(400);
  });

  it('refuses the eleventh wrong password in 15 minutes with 429, and successes never count', async () => {
    const email = 'many@example.com';
    const person = await signedIn(caller.account, 'owner', email);
    await person.ask('POST', '/api/password', { password: 'correct horse' });
    const browser = openBrowser(api.dashboardUrl);
    for (let n = 0; n < 12; n++) expect((await byPassword(browser, email, 'correct horse')).status).to.equal(200);
    const guesses = await Promise.all(Array.from({ length: 15 }, () => byPassword(browser, email, 'wrong-one')));
    expect(guesses.filter(({ status }) => status === 401)).to.have.length(10);
    const refused = await byPassword(browser, email, 'correct horse');
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).to.deep.equal([429, true]);
    api.store.advance(16 * minute);
    expect((await byPassword(browser, email, 'correct horse')).status).to.equal(200);
  });

  it('D38: counts failures of an address and blocks it, as a wrong API key does', async () => {
    const own = await startApi({ TRAWL_AUTH_FAILURES: '5' });
    try {
      const { account } = await own.addCaller();
      const link = await invited(own.store, account);
      const browser = openBrowser(own.dashboardUrl);
      for (let n = 0; n < 5; n++) expect((await browser.signIn(`${link.slice(0, -1)}!`)).status).to.equal(401);
      const refused = await browser.signIn(link);
      expect([refused.status, refused.headers.get('x-error-code')]).to.deep.equal([403, 'ip_blocked']);
    } finally {
      await own.stop();
    }
  });

  it('refuses 1,000 wrong passwords, judges few of them, and lets nobody in meanwhile', async () => {
    const own = await startApi();
    try {
      const { account } = await own.addCaller();
      const email = 'besieged@example.com';
      const person = await signedInAt(own, account, 'owner', email);
      await person.ask('POST', '/api/password', { password: 'correct horse' });
      const thief = openBrowser(own.dashboardUrl);
      const codes: Record<string, number> = {};
      for (let n = 0; n < 1_000; n += 50) {
        const round = Array.from({ length: 50 }, (_, m) => byPassword(thief, email, `wrong-${n + m}`));
        for (const { headers } of await Promise.all(round)) {
          const code = headers.get('x-error-code') ?? 'let in';
          codes[code] = (codes[code] ?? 0) + 1;
        }
      }
      const { sign_in_failed: judged = 0, rate_limited: limited = 0, ip_blocked: blocked = 0, ...others } = codes;
      expect(others).to.deep.equal({});
      expect(judged).to.be.within(1, 10);
      expect(limited + blocked).to.equal(1_000 - judged);
      expect((await byPassword(thief, email, 'correct horse')).status).to.be.oneOf([403, 429]);
      // Who is signed in goes on.
      expect((await person.ask('GET', '/api/session')).status).to.equal(200);
    } finally {
      await own.stop();
    }
  });

  it('lets a page of another origin read and change nothing, whatever cookie it has', async () => {
    const foreign = 'https://evil.example';
    for (const [method, path, body] of [
      ['GET', '/api/session', undefined],
      ['GET', '/api/keys', undefined],
      ['OPTIONS', '/api/keys', undefined],
      ['POST', '/api/keys', { alias: 'stolen' }],
    ] as const) {
      const { status, headers } = await owner.ask(method, path, body, {
        origin: foreign,
        headers: { origin: foreign },
      });
      // A browser hands nothing of an answer to a page that is not named.
      expect(headers.get('access-control-allow-origin'), `${method} ${path}`).to.equal(null);
      expect(headers.get('cross-origin-resource-policy')).to.equal('same-origin');
      if (method !== 'GET') expect(status, `${method} ${path}`).to.be.within(400, 499);
    }
    const { keys } = (await owner.ask('GET', '/api/keys')).json;
    expect(keys.some(({ alias }: { alias: string }) => alias === 'stolen')).to.equal(false);
  });
});

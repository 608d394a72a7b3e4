import { expect } from 'chai';
import type { Seal } from '../../src/base/seal.ts';
import { identityOf, personIdOf } from '../../src/model/person.ts';
import { listBlocks } from '../../src/store/access/list-blocks.ts';
import { keys } from '../../src/store/keys.ts';
import { readAudit } from '../../src/store/log/read-audit.ts';
import { openSession } from '../../src/store/people/open-session.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { invited } from '../support/browser-session.ts';
import { type IdentityProvider, startIdentityProvider } from '../support/identity-provider.ts';
import { followRedirects } from '../support/openid-sign-ins.ts';
import { aSecret } from '../support/people-scenarios.ts';

const people = {
  ada: { email: 'ada@example.com', email_verified: true },
  other: { email: 'ada@example.com', email_verified: true },
  unverified: { email: 'bob@example.com', email_verified: false },
  stranger: { email: 'eve@example.com', email_verified: true },
};

const maxFailures = 10;

describe('the sign-in with OpenID Connect', () => {
  let provider: IdentityProvider;
  let api: TestApi;
  let caller: ApiCaller;
  let seal: Seal;
  before(async () => {
    provider = await startIdentityProvider();
    const env = {
      TRAWL_OIDC_ISSUER: provider.issuer,
      TRAWL_OIDC_CLIENT_ID: provider.clientId,
      TRAWL_OIDC_CLIENT_SECRET: [...provider.secrets][0]!,
      TRAWL_AUTH_FAILURES: String(maxFailures),
    };
    api = await startApi(env, (parts) => {
      ({ seal } = parts);
      return parts;
    });
    provider.open(`${api.dashboardUrl}/api/sign-in/openid/back`, people);
  });
  after(async () => {
    await api.stop();
    await provider.stop();
  });
  beforeEach(async () => {
    caller = await api.addCaller();
  });

  const signIn = async (sub: keyof typeof people, change?: (url: string) => string, from = '') => {
    provider.become(sub);
    const { url, cookiesOf } = await followRedirects(`${api.dashboardUrl}/api/sign-in/openid${from}`, change);
    const headers = { cookie: `trawl=${cookiesOf(api.dashboardUrl).get('trawl') ?? ''}` };
    const session = await fetch(`${api.dashboardUrl}/api/session`, { headers });
    return { path: url.slice(api.dashboardUrl.length), status: session.status, text: await session.text() };
  };
  const failed = (why: string) => ({ path: `/sign-in?failed=${why}`, status: 401 });

  it('D56: opens a session of an invited person whose e-mail address the provider has verified', async () => {
    await invited(api.store, caller.account, 'member', 'ada@example.com');
    const { path, status, text } = await signIn('ada');
    expect([path, status]).to.deep.equal(['/', 200]);
    expect(JSON.parse(text)).to.deep.include({ role: 'member', account: { slug: caller.slug, name: caller.slug } });
    expect((await signIn('ada')).status).to.equal(200);
  });

  it('notes in the audit log which identity a person got, once, and not the sign-ins after it', async () => {
    await invited(api.store, caller.account, 'owner', 'ada@example.com');
    await api.store.connection.send(['HDEL', keys.person(personIdOf('ada@example.com')), 'identity']);
    // Without a wish, a person of several accounts gets any of them.
    const begin = `?account=${caller.account}`;
    for (const _ of [1, 2]) expect((await signIn('ada', undefined, begin)).status).to.equal(200);
    const entries = await readAudit(api.store, caller.account, { limit: 10, open: async () => null });
    const noted = entries.filter(({ action }) => action === 'person.identity');
    expect(noted.map(({ who, from, change }) => ({ who, from, change }))).to.deep.equal([
      { who: 'ada@example.com', from: '127.0.0.1', change: { identity: `${provider.issuer} ada` } },
    ]);
  });

  it('leads back to the view and the account from which it was begun, and to no other place', async () => {
    const other = await api.addCaller();
    for (const { account } of [caller, other]) await invited(api.store, account, 'owner', 'ada@example.com');
    for (const { account, slug } of [caller, other]) {
      const { path, text } = await signIn('ada', undefined, `?to=%2Fjobs%3Fstatus%3DError&account=${account}`);
      expect(path).to.equal('/jobs?status=Error');
      expect(JSON.parse(text).account.slug).to.equal(slug);
    }
    const elsewhere = [
      '//evil.example',
      '/\\evil.example',
      '/.//evil.example',
      'https://evil.example/',
      'javascript:x',
    ];
    for (const to of [...elsewhere, '/api/sign-out', `/jobs?${'a'.repeat(2000)}`, '/jobs&to=/keys'])
      expect((await signIn('ada', undefined, `?to=${encodeURIComponent(to)}&account=x`)).path, to).to.equal('/');
  });

  it('leads to the first view after a sign-in that a release began which kept no view', async () => {
    await invited(api.store, caller.account, 'owner', 'ada@example.com');
    provider.become('ada');
    const begun = await fetch(`${api.dashboardUrl}/api/sign-in/openid?to=/keys`, { redirect: 'manual' });
    const [name, sealed] = begun.headers.getSetCookie()[0]!.split(';')[0]!.split('=');
    const { to, ...older } = JSON.parse(seal.open('openid', sealed!)!);
    expect(to).to.equal('/keys');
    let way = '';
    await followRedirects(begun.headers.get('location')!, (url) => {
      if (!url.includes('/api/sign-in/openid/back')) return url;
      way = url;
      return api.dashboardUrl;
    });
    const cookie = `${name}=${seal.seal('openid', JSON.stringify(older))}`;
    const back = await fetch(way, { redirect: 'manual', headers: { cookie } });
    expect(back.headers.get('location')).to.equal('/');
  });

  it('refuses another identity with the same address, an address that is not verified, and strangers', async () => {
    await invited(api.store, caller.account, 'owner', 'ada@example.com');
    await invited(api.store, caller.account, 'owner', 'bob@example.com');
    await signIn('ada');
    for (const sub of ['other', 'unverified', 'stranger'] as const) {
      expect(await signIn(sub), sub).to.deep.include(failed('openid'));
    }
  });

  it('lets the people of an earlier issuer in by their verified addresses once another issuer is configured', async () => {
    await invited(api.store, caller.account, 'owner', 'ada@example.com');
    await invited(api.store, caller.account, 'owner', 'bob@example.com');
    expect((await signIn('ada')).status).to.equal(200);
    const next = await startIdentityProvider();
    const env = {
      TRAWL_OIDC_ISSUER: next.issuer,
      TRAWL_OIDC_CLIENT_ID: next.clientId,
      TRAWL_OIDC_CLIENT_SECRET: [...next.secrets][0]!,
    };
    const moved = await startApi(env, (parts) => ({ ...parts, store: api.store }));
    try {
      next.open(`${moved.dashboardUrl}/api/sign-in/openid/back`, people);
      const ends: string[] = [];
      for (const sub of ['unverified', 'other', 'ada', 'other']) {
        next.become(sub);
        ends.push(
          (await followRedirects(`${moved.dashboardUrl}/api/sign-in/openid`)).url.slice(moved.dashboardUrl.length),
        );
      }
      const refused = '/sign-in?failed=openid';
      expect(ends).to.deep.equal([refused, '/', refused, '/']);
      expect(await signIn('other'), 'the first issuer again').to.deep.include(failed('openid'));
      expect((await signIn('ada')).status).to.equal(200);
    } finally {
      await moved.stop();
      await next.stop();
    }
  });

  it('refuses a person of another directory of the same issuer, who may give themselves any address', async () => {
    await invited(api.store, caller.account, 'owner', 'ada@example.com');
    const issuer = 'https://login.example.com/{tenantid}/v2.0';
    const enter = (tenant: string) => {
      const iss = issuer.replace('{tenantid}', tenant);
      const email = 'ada@example.com';
      const proof = { identity: identityOf(issuer, { iss, sub: 'ada' }), accountId: caller.account, email };
      return openSession(api.store, proof, { session: aSecret(email), oldHash: '', ip: '', agent: '' });
    };
    expect([await enter('one'), await enter('other'), await enter('one')]).to.deep.equal([true, false, true]);
  });

  it('refuses an answer with another state, a code of another browser, and one that nobody began', async () => {
    await invited(api.store, caller.account, 'owner', 'ada@example.com');
    const back = '/api/sign-in/openid/back';
    const otherState = (url: string) => (url.includes(back) ? url.replace(/state=[^&]*/, 'state=x') : url);
    expect(await signIn('ada', otherState)).to.deep.include(failed('late'));
    let code = '';
    await signIn('ada', (url) => {
      if (url.includes(back)) code = new URL(url).searchParams.get('code') ?? '';
      return url;
    });
    const otherCode = (url: string) => (url.includes(back) ? url.replace(/code=[^&]*/, `code=${code}`) : url);
    expect(await signIn('ada', otherCode)).to.deep.include(failed('late'));
    const { url } = await followRedirects(`${api.dashboardUrl}${back}?code=x&state=y`);
    expect(url).to.equal(`${api.dashboardUrl}/sign-in?failed=late`);
  });

  it('blocks nobody for a way back that no sign-in of the browser began, and a browser that began them', async () => {
    const back = `${api.dashboardUrl}/api/sign-in/openid/back?code=x&state=y`;
    const load = (cookie: string) => fetch(back, { redirect: 'manual', headers: { cookie } });
    for (let n = 0; n < maxFailures; n++) {
      for (const cookie of ['', 'trawl-openid=x']) expect((await load(cookie)).status).to.equal(303);
    }
    expect(await listBlocks(api.store)).to.deep.equal([]);
    const begun = await fetch(`${api.dashboardUrl}/api/sign-in/openid`, { redirect: 'manual' });
    const [cookie = ''] = begun.headers.getSetCookie()[0]!.split(';');
    api.store.advance(11 * 60_000);
    for (let n = 0; n < maxFailures; n++) await load(cookie);
    expect(await listBlocks(api.store)).to.have.length(1);
    api.store.advance(24 * 60 * 60_000);
  });

  it('blocks nobody when the provider does not know the client secret, and goes on when it does', async () => {
    await invited(api.store, caller.account, 'owner', 'ada@example.com');
    const known = [...provider.secrets];
    provider.secrets.clear();
    for (let n = 0; n < maxFailures; n++) expect(await signIn('ada')).to.deep.include(failed('away'));
    for (const secret of known) provider.secrets.add(secret);
    expect(await signIn('ada')).to.deep.include({ path: '/', status: 200 });
  });

  it('is offered by the page only where a provider is configured', async () => {
    const other = await startApi();
    const offers = async (url: string) => (await (await fetch(`${url}/api/sign-in`)).json()) as object;
    expect(await offers(api.dashboardUrl)).to.deep.include({ openid: true });
    expect(await offers(other.dashboardUrl)).to.deep.include({ openid: false });
    expect((await fetch(`${other.dashboardUrl}/api/sign-in/openid`)).status).to.equal(404);
    await other.stop();
  });
});

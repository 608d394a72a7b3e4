import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.ts';
import { invited } from '../support/browser-session.ts';
import { type IdentityProvider, startIdentityProvider } from '../support/identity-provider.ts';
import { followRedirects } from '../support/openid-sign-ins.ts';

const dashboardUrl = 'https://films.example';

describe('a dashboard behind https whose domain has hosts of others', () => {
  let provider: IdentityProvider;
  let api: TestApi;
  before(async () => {
    provider = await startIdentityProvider();
    api = await startApi({
      TRAWL_DASHBOARD_URL: dashboardUrl,
      TRAWL_OIDC_ISSUER: provider.issuer,
      TRAWL_OIDC_CLIENT_ID: provider.clientId,
      TRAWL_OIDC_CLIENT_SECRET: [...provider.secrets][0]!,
    });
    provider.open(`${dashboardUrl}/api/sign-in/openid/back`, {
      eve: { email: 'eve@example.com', email_verified: true },
    });
    provider.become('eve');
  });
  after(async () => {
    await api.stop();
    await provider.stop();
  });

  it('signs no browser in to the account of somebody who began the sign-in elsewhere and planted its cookie', async () => {
    await invited(api.store, (await api.addCaller()).account, 'owner', 'eve@example.com');
    const local = `http://127.0.0.1:${api.dashboardPort}`;
    const begun = await fetch(`${local}/api/sign-in/openid`, { redirect: 'manual' });
    const [cookie = '', ...attributes] = begun.headers.getSetCookie()[0]!.split('; ');
    // Browsers take a cookie of this prefix from its own host alone, and only with these.
    expect(cookie).to.match(/^__Host-/);
    expect(attributes).to.include.members(['Path=/', 'Secure', 'HttpOnly', 'SameSite=Lax']);
    let way = '';
    await followRedirects(begun.headers.get('location')!, (url) => {
      if (!url.startsWith(dashboardUrl)) return url;
      way = url.replace(dashboardUrl, local);
      return `${local}/sign-in`;
    });
    const goOn = async (sent: string) =>
      (await fetch(way, { redirect: 'manual', headers: { cookie: sent } })).headers.get('location');
    expect(await goOn(cookie.replace('__Host-', ''))).to.equal('/sign-in?failed=late');
    expect(await goOn(cookie)).to.equal('/');
  });
});

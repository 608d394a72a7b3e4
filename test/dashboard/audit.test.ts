import { expect } from 'chai';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { type Dashboard, eachWithDashboard } from '../support/browser-session.ts';

interface Shown {
  readonly who: string;
  readonly from: string;
  readonly action: string;
  readonly target: string;
  readonly change: Readonly<Record<string, unknown>>;
}

describe('the audit log on the dashboard', () => {
  let dashboard: Dashboard;
  eachWithDashboard((made) => {
    dashboard = made;
  });

  it('shows owners each change that a person makes, with their address, and no secret', async () => {
    const { caller, signedIn } = dashboard;
    const owner = await signedIn(caller.account, 'owner', 'ada@example.com');
    const { json: made } = await owner.ask('POST', '/api/keys', { alias: 'main', category: 'web' });
    const { json: rotated } = await owner.ask('POST', '/api/keys/main/rotate', { overlap_hours: 1 });
    await owner.ask('PATCH', '/api/keys/main', { active: false });
    await owner.ask('DELETE', '/api/keys/main');
    const { json: invited } = await owner.ask('POST', '/api/people', { email: 'bob@example.com', role: 'viewer' });
    await owner.ask('DELETE', '/api/people/bob@example.com');
    const { json: webhook } = await owner.ask('POST', '/api/webhooks/secret', {});
    await owner.ask('DELETE', '/api/webhooks/secret');
    await owner.ask('PUT', '/api/topup', { monthly_cap_cents: 900 });
    await owner.ask('POST', '/api/password', { password: 'correct horse' });
    const { json, text } = await owner.ask('GET', '/api/audit');
    const changes = (json.changes as Shown[]).filter(({ who }) => who === 'ada@example.com');
    expect(changes.map(({ action, target }) => `${action} ${target}`.trim())).to.deep.equal([
      'person.password ada@example.com',
      'topup.change',
      'account.change',
      'account.change',
      'person.remove bob@example.com',
      'person.invite bob@example.com',
      'key.delete main',
      'key.change main',
      'key.rotate main',
      'key.create main',
    ]);
    for (const { from } of changes) expect(from).to.match(/^(127\.0\.0\.1|::1)$/);
    for (const secret of [made.key, rotated.key, invited.sign_in_url, webhook.webhook_secret, 'correct horse']) {
      expect(secret).to.be.a('string');
      expect(text).not.to.include(secret);
    }
  });

  it('has no entry of the removal of a webhook secret when there is none: no limit of changes counts what takes something away', async () => {
    const { owner } = dashboard;
    await owner.ask('POST', '/api/webhooks/secret', {});
    expect((await owner.ask('DELETE', '/api/webhooks/secret')).json).to.deep.equal({ removed: true });
    const before = (await owner.ask('GET', '/api/audit')).text;
    expect((await owner.ask('DELETE', '/api/webhooks/secret')).status).to.equal(200);
    expect((await owner.ask('GET', '/api/audit')).text).to.equal(before);
  });

  it('has no entry of a change that names nothing to change', async () => {
    const { caller, api, owner } = dashboard;
    await owner.ask('POST', '/api/keys', { alias: 'main' });
    const before = (await owner.ask('GET', '/api/audit')).text;
    const { json: topup } = await owner.ask('GET', '/api/topup');
    for (const body of [{}, { quotas: {} }]) {
      const { status, json } = await owner.ask('PATCH', '/api/keys/main', body);
      expect([status, json.alias]).to.deep.equal([200, 'main']);
    }
    expect((await owner.ask('PATCH', '/api/keys/none', {})).status).to.equal(404);
    for (const body of [{}, { pack: {} }]) {
      const { status, json } = await owner.ask('PUT', '/api/topup', body);
      expect([status, json]).to.deep.equal([200, topup]);
    }
    const actor = { via: 'dashboard', who: 'ada@example.com', from: '192.0.2.9' } as const;
    expect((await setAccount({ ...api.store, actor }, caller.account, {})).id).to.equal(caller.account);
    expect((await owner.ask('GET', '/api/audit')).text).to.equal(before);
  });

  it('has of a changed key the fields that were sent alone, and no empty quotas beside them', async () => {
    const { owner } = dashboard;
    await owner.ask('POST', '/api/keys', { alias: 'main', category: 'films' });
    await owner.ask('PATCH', '/api/keys/main', { active: false });
    const { json } = await owner.ask('GET', '/api/audit');
    const changes = (json.changes as Shown[]).filter(({ target }) => target === 'main');
    expect(changes.map(({ change }) => change)).to.deep.equal([{ active: false }, { category: 'films' }]);
  });

  it('has no entry of a body that is no object or has an unknown member, nor of such a pack: all are refused', async () => {
    const { owner } = dashboard;
    const before = (await owner.ask('GET', '/api/audit')).text;
    const routes = [
      ...['PUT /api/topup', 'PUT /api/alerts', 'POST /api/checkout', 'POST /api/keys', 'POST /api/people'],
      ...['POST /api/webhooks/secret', 'POST /api/jobs', 'POST /api/password', 'POST /api/sign-in'],
      ...['POST /api/session/account', 'PATCH /api/keys/main', 'POST /api/keys/main/rotate'],
    ];
    for (const [method = '', path = ''] of routes.map((route) => route.split(' '))) {
      for (const body of [[], [{ enabled: true }], 'text', 5, null]) {
        const { status } = await owner.ask(method, path, body);
        expect(status, `${method} ${path} ${JSON.stringify(body)}`).to.equal(400);
      }
    }
    const asText = { headers: { 'content-type': 'text/plain' } };
    expect((await owner.ask('PUT', '/api/topup', { enabled: false }, asText)).status).to.equal(400);
    for (const wrong of [{ monthly_cap: 900 }, { pack: { price: 5 } }]) {
      const { status, json } = await owner.ask('PUT', '/api/topup', wrong);
      expect([status, json.error.includes(', not ')], JSON.stringify(wrong)).to.deep.equal([400, true]);
    }
    for (const pack of [[], [{ title: 'P' }], 'text', 5]) {
      expect((await owner.ask('PUT', '/api/topup', { pack })).status, JSON.stringify(pack)).to.equal(400);
    }
    expect((await owner.ask('GET', '/api/audit')).text).to.equal(before);
  });

  it('is refused to members and viewers, and shown to operators', async () => {
    const { caller, owner, signedIn } = dashboard;
    await owner.ask('POST', '/api/keys', { alias: 'main' });
    for (const role of ['member', 'viewer'] as const) {
      const other = await signedIn(caller.account, role);
      expect((await other.ask('GET', '/api/audit')).status, role).to.equal(403);
    }
    const operator = await signedIn('', 'operator');
    const { json: accounts } = await owner.ask('GET', '/api/session');
    await operator.ask('POST', '/api/session/account', { account: accounts.account.slug });
    expect((await operator.ask('GET', '/api/audit')).json.changes[0]).to.include({ target: 'main' });
  });

  it('does not tell owners which user of which machine made a change at the command line', async () => {
    const { api, caller, owner } = dashboard;
    const actor = { via: 'command', who: 'grace', from: 'bastion-7' } as const;
    await setAccount({ ...api.store, actor }, caller.account, { weight: 2 });
    const { json, text } = await owner.ask('GET', '/api/audit');
    expect(json.changes[0]).to.deep.include({ who: 'operator', from: '', action: 'account.change' });
    expect(text).not.to.match(/grace|bastion/);
  });

  it('lets a person make 500 changes a day, which keep nobody from taking rights away', async () => {
    const { caller, owner, signedIn } = dashboard;
    await owner.ask('POST', '/api/keys', { alias: 'leaked' });
    const viewer = await signedIn(caller.account, 'viewer');
    const post = () => viewer.ask('POST', '/api/password', { password: 'short' });
    const statuses = new Set<number>();
    for (let n = 0; n < 500; n++) statuses.add((await post()).status);
    expect([...statuses]).to.deep.equal([400]);
    expect((await post()).status).to.equal(429);
    expect((await owner.ask('PATCH', '/api/keys/leaked', { active: false })).status).to.equal(200);
    expect((await viewer.ask('POST', '/api/sign-out', {})).status).to.equal(200);
  });

  it('is shown by pages, and a place that no page named is refused', async () => {
    const { owner } = dashboard;
    for (let n = 0; n < 60; n++) await owner.ask('POST', '/api/keys', { alias: `key ${n}` });
    const first = await owner.ask('GET', '/api/audit');
    const second = await owner.ask('GET', `/api/audit?before=${first.json.next}`);
    const seen = [...first.json.changes, ...second.json.changes].map(({ target }: Shown) => target);
    expect(seen.slice(0, 60)).to.deep.equal(Array.from({ length: 60 }, (_, n) => `key ${59 - n}`));
    expect(second.json.next).to.equal(null);
    expect((await owner.ask('GET', '/api/audit?before=x')).status).to.equal(400);
  });

  it('is refused before the first of all places, 0-0, as one that no page named', async () => {
    for (const place of ['0-0', '000-00']) {
      const { status, json } = await dashboard.owner.ask('GET', `/api/audit?before=${place}`);
      expect([status, json.error], place).to.deep.equal([
        400,
        'Bad Request: before must be the next of an earlier answer',
      ]);
    }
    expect((await dashboard.owner.ask('GET', '/api/audit?before=0-1')).json.changes).to.deep.equal([]);
  });
});

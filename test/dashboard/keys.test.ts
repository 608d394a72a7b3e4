import { expect } from 'chai';
import { type Dashboard, eachWithDashboard } from '../support/browser-session.ts';

interface ShownKey {
  readonly alias: string;
  readonly expires: string | null;
  readonly used: Readonly<Record<string, number>>;
}

const film = { query: 'https://example.com/film.mp4' };
const hour = 3_600_000;

describe('keys on the dashboard', () => {
  let api: Dashboard['api'];
  let owner: Dashboard['owner'];
  eachWithDashboard((dashboard) => {
    ({ api, owner } = dashboard);
  });

  const create = async (body: object): Promise<{ alias: string; key: string }> => {
    const { status, json } = await owner.ask('POST', '/api/keys', { alias: 'own', ...body });
    expect(status).to.equal(201);
    return json;
  };
  const find = async (alias: string): Promise<ShownKey | undefined> => {
    const { json } = await owner.ask('GET', '/api/keys');
    return json.keys.find((key: ShownKey) => key.alias === alias);
  };
  const patch = async (body: string): Promise<readonly unknown[]> => {
    const sent = { cookie: owner.cookie, origin: api.dashboardUrl, 'x-csrf-token': owner.csrf };
    const headers = { ...sent, 'content-type': 'application/json' };
    const answer = await fetch(`${api.dashboardUrl}/api/keys/own`, { method: 'PATCH', headers, body });
    return [answer.status, await answer.json()];
  };
  const usage = async (key: string) => (await api.get('/v1/usage', key)).status;

  it('auth-7: are created with their quotas, shown once, and work at once', async () => {
    const { key } = await create({ category: 'test', expires: '2099-01-01', quotas: { daily: 2, total: null } });
    expect(await usage(key)).to.equal(200);
    expect(await find('own')).to.deep.include({ category: 'test', expires: '2099-01-01T23:59:59.999Z', active: true });
    for (const path of ['/api/keys', '/api/session', '/api/requests']) {
      expect((await owner.ask('GET', path)).text, path).not.to.include(key);
    }
    await api.get('/v1/video/download', key, film);
    expect((await find('own'))?.used).to.deep.equal({ total: 1, monthly: 1, weekly: 1, daily: 1 });
    api.store.advance(25 * hour);
    expect((await find('own'))?.used).to.deep.equal({ total: 1, monthly: 1, weekly: 1, daily: 0 });
  });

  it('key-quotas: have no cap where the field of a quota is left blank, nor an end where that of the expiry is', async () => {
    await create({ expires: '', quotas: { total: '', daily: '7' } });
    expect(await find('own')).to.deep.include({
      expires: null,
      quotas: { total: null, monthly: null, weekly: null, daily: 7 },
    });
    await patch('{"quotas":{"daily":"","weekly":0}}');
    expect(await find('own')).to.deep.include({ quotas: { total: null, monthly: null, weekly: 0, daily: null } });
  });

  it('are refused with a sentence for a wrong value, and nothing is made', async () => {
    const wrong = [
      {},
      { alias: '..' },
      { alias: 'a', expires: 'soon' },
      { alias: 'a', expires: '2020-02-29' },
      { alias: 'a', active: 'yes' },
      { alias: 'a', quotas: { hourly: 1 } },
      { alias: 'a', quotas: { daily: -1 } },
      { alias: 'a', quotas: [] },
      { alias: 'a', category: 5 },
      { alias: 'a', quota: { daily: 1 } },
    ];
    for (const body of wrong) {
      const { status, json } = await owner.ask('POST', '/api/keys', body);
      expect([status, json.error.startsWith('Bad Request: ')], JSON.stringify(body)).to.deep.equal([400, true]);
    }
    expect(await find('a')).to.equal(undefined);
    await create({});
    expect((await owner.ask('POST', '/api/keys', { alias: 'own' })).status).to.equal(409);
  });

  it('are not said to be changed by a body of unknown length that is not declared to be JSON, which nobody reads', async () => {
    const { key } = await create({});
    const count = async () => (await owner.ask('GET', '/api/keys')).json.keys.length;
    const known = [await usage(key), (await find('own'))?.expires, await count()];
    // `fetch` declares no type of a stream, and sends it in chunks.
    const streamed = (method: string, path: string, body: object) =>
      fetch(api.dashboardUrl + path, {
        method,
        headers: { cookie: owner.cookie, origin: api.dashboardUrl, 'x-csrf-token': owner.csrf },
        body: new Blob([JSON.stringify(body)]).stream(),
        duplex: 'half',
      });
    const answers = [
      await streamed('PATCH', '/api/keys/own', { active: false }),
      await streamed('POST', '/api/keys/own/rotate', { overlap_hours: 0 }),
    ];
    expect(answers.map(({ status }) => status)).to.deep.equal([400, 400]);
    expect(await answers[0]!.json()).to.deep.equal({ error: 'Bad Request: the body must be of type application/json' });
    expect([await usage(key), (await find('own'))?.expires, await count()]).to.deep.equal(known);
  });

  it('are changed by no body with a member that is misspelled or cannot be changed, nor is anything else of it', async () => {
    const { key } = await create({});
    const known = await find('own');
    const changes = 'the body knows category, active, expires, quotas, not ';
    for (const [method, path, body, sentence] of [
      ['PATCH', '/api/keys/own', { category: 'other', Active: false }, `${changes}Active`],
      ['PATCH', '/api/keys/own', { alias: 'other' }, `${changes}alias`],
      ['POST', '/api/keys/own/rotate', { overlap: 0 }, 'the body knows overlap_hours, not overlap'],
    ] as const) {
      const { status, json } = await owner.ask(method, path, body);
      expect([status, json.error]).to.deep.equal([400, `Bad Request: ${sentence}`]);
    }
    expect([await find('own'), await usage(key)]).to.deep.equal([known, 200]);
  });

  it('are refused by a body that is no UTF-8, which would be read as another text', async () => {
    const body = Buffer.concat([Buffer.from('{"alias":"a'), Buffer.from([0xff, 0xc3]), Buffer.from('"}')]);
    const answer = await fetch(`${api.dashboardUrl}/api/keys`, {
      method: 'POST',
      headers: {
        ...{ cookie: owner.cookie, origin: api.dashboardUrl, 'x-csrf-token': owner.csrf },
        'content-type': 'application/json',
      },
      body,
    });
    expect([answer.status, await answer.json()]).to.deep.equal([
      400,
      { error: 'Bad Request: the body must be JSON in UTF-8' },
    ]);
    expect(await find('a\uFFFD')).to.equal(undefined);
  });

  it('are changed by no body with a member that is given twice, of which another parser takes the first', async () => {
    await create({});
    const known = await find('own');
    for (const [text, name] of [
      ['{"active":false,"active":true}', 'active'],
      ['{"quotas":{"daily":1,"total":2,"\\u0064aily":3}}', 'daily'],
    ] as const) {
      const error = `Bad Request: ${name} must be a single value, given once`;
      expect(await patch(text)).to.deep.equal([400, { error }]);
    }
    expect(await find('own')).to.deep.equal(known);
  });

  it('are changed by no body that is no JSON, in which nobody looks for a member that is given twice: that takes the square of its length', async () => {
    await create({});
    const error = 'Bad Request: the body must be JSON in UTF-8';
    for (const text of ['{"active":false,"active":true', `"${'\\"'.repeat(8_000)}`])
      expect(await patch(text)).to.deep.equal([400, { error }]);
  });

  it('are refused with a sentence about the address when that cannot be decoded', async () => {
    const { status, json } = await owner.ask('PATCH', '/api/keys/100%', { active: false });
    expect([status, json.error]).to.deep.equal([400, 'Bad Request: the address cannot be decoded']);
  });

  it('get no new secret after their last day, because it would never work', async () => {
    const { key } = await create({ expires: new Date(api.store.clock.now() + hour).toISOString() });
    api.store.advance(2 * hour);
    const { status, json } = await owner.ask('POST', '/api/keys/own/rotate', {});
    expect(`${status} ${json.error}`).to.match(/^400 Bad Request: The key would never work: it would have expired at /);
    await owner.ask('PATCH', '/api/keys/own', { expires: null });
    expect(await usage(key)).to.equal(200);
    const rotated = await owner.ask('POST', '/api/keys/own/rotate', {});
    expect([rotated.status, await usage(rotated.json.key)]).to.deep.equal([200, 200]);
  });

  it('auth-7: are deactivated, reactivated, and deleted only when they were never used', async () => {
    const { key } = await create({});
    await owner.ask('PATCH', '/api/keys/own', { active: false });
    const refused = await api.get('/v1/usage', key);
    expect([refused.status, refused.text]).to.deep.equal([401, '{"error":"Inactive API Key"}']);
    await owner.ask('PATCH', '/api/keys/own', { active: true });
    expect(await usage(key)).to.equal(200);
    const used = await owner.ask('DELETE', '/api/keys/own');
    expect([used.status, used.json]).to.deep.equal([
      409,
      { error: 'The key has request history and cannot be deleted' },
    ]);
    await owner.ask('POST', '/api/keys', { alias: 'fresh/1' });
    expect((await owner.ask('DELETE', '/api/keys/fresh%2F1')).status).to.equal(200);
    expect((await owner.ask('DELETE', '/api/keys/fresh%2F1')).status).to.equal(404);
  });

  it('rotate: the old secret works for the overlap, under another alias, and the new one keeps the settings', async () => {
    const { key } = await create({ category: 'test' });
    const { json } = await owner.ask('POST', '/api/keys/own/rotate', { overlap_hours: 2 });
    expect([await usage(key), await usage(json.key)]).to.deep.equal([200, 200]);
    expect(await find('own')).to.include({ category: 'test', expires: null });
    api.store.advance(3 * hour);
    const ended = await api.get('/v1/usage', key);
    expect([ended.status, ended.text, await usage(json.key)]).to.deep.equal([401, '{"error":"Expired API Key"}', 200]);
    expect((await owner.ask('POST', '/api/keys/none/rotate', {})).status).to.equal(404);
    expect((await owner.ask('POST', '/api/keys/own/rotate', { overlap_hours: 73 })).status).to.equal(400);
  });

  it('D35: rotate gives no key more calls than its quota: its old secret stops at once, and its counts go on', async () => {
    const { key } = await create({ quotas: { total: 2, daily: 2 } });
    await api.get('/v1/video/download', key, film);
    const { json } = await owner.ask('POST', '/api/keys/own/rotate', {});
    expect(await usage(key)).to.equal(401);
    expect((await api.get('/v1/video/download', json.key, film)).status).to.equal(202);
    const reached = await api.get('/v1/video/download', json.key, film);
    expect([reached.status, reached.json.error]).to.deep.equal([
      401,
      'Rate limit exceeded for the API key: quota total',
    ]);
  });
});

import { expect } from 'chai';
import { personIdOf } from '../../src/model/person.ts';
import { keys } from '../../src/store/keys.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { removePerson } from '../../src/store/people/remove-person.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { signedInAt } from '../support/browser-session.ts';

describe('pages of the dashboard beside one record that is damaged', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_DASHBOARD_URL: 'http://localhost:0' });
  });
  after(() => api.stop());

  const damage = (key: string, field: string) => api.store.connection.send(['HSET', key, field, '{"name":"cu']);

  it('offer all packs but the one that cannot be read, which the operator may write anew', async () => {
    const owner = await signedInAt(api, (await api.addCaller()).account, 'owner', 'ada@example.com');
    const terms = { title: 'Pack', credits: 10, price_cents: 500, currency: 'eur' };
    for (const name of ['small', 'large']) await setOffer(api.store, { name, ...terms });
    await damage(keys.offers, 'small');
    const { status, json } = await owner.ask('GET', '/api/offers');
    expect([status, json.offers]).to.deep.equal([200, [{ name: 'large', ...terms }]]);
    expect(await setOffer(api.store, { name: 'small', title: 'Pack' })).to.equal(null);
    expect(await setOffer(api.store, { name: 'small', ...terms })).to.include(terms);
  });

  it('are shown to a person one of whose passkeys and sessions cannot be read, and who can be removed', async () => {
    const { account } = await api.addCaller();
    const email = 'bob@example.com';
    const owner = await signedInAt(api, account, 'owner', email);
    const personId = personIdOf(email);
    await damage(keys.passkeys(personId), 'lost');
    await damage(keys.sessions(personId), 'f'.repeat(64));
    for (const path of ['/api/session', '/api/passkeys', '/api/sessions']) {
      expect((await owner.ask('GET', path)).status, path).to.equal(200);
    }
    expect((await owner.ask('POST', '/api/password', { password: 'a long enough password' })).status).to.equal(200);
    const again = await signedInAt(api, account, 'owner', email);
    expect((await again.ask('GET', '/api/session')).status).to.equal(200);
    await removePerson(api.store, account, email);
    expect((await again.ask('GET', '/api/session')).status).to.equal(401);
  });
});

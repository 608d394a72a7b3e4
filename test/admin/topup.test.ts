import { expect } from 'chai';
import { keys } from '../../src/store/keys.ts';
import { listOffers, setOffer } from '../../src/store/money/offers.ts';
import { readPerson } from '../../src/store/people/read-people.ts';
import { type Operator, startOperator } from '../support/operator.ts';
import { anAccount } from '../support/record.ts';

describe('commands for top-ups, offers and people', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());

  const whole = {
    '--threshold': '15',
    '--pack-title': 'Auto pack',
    '--pack-total': '10',
    '--price-cents': '990',
    '--currency': 'EUR',
    '--customer': 'cus_1',
    '--payment-method': 'pm_1',
  };
  const provider = { TRAWL_STRIPE_KEY: 'sk_test_1' };
  const set = async (slug: string, options: Record<string, string>, env: Record<string, string> = provider) => {
    const { code, out } = await operator.run(['topup', 'set', slug, '--json', ...Object.entries(options).flat()], env);
    return { code, said: JSON.parse(out) };
  };
  const isEnabled = async (slug: string) => (await operator.json('topup', 'show', slug)).enabled;

  it('topup show shows a setting that is disabled at first, and what topup set chose', async () => {
    const { slug } = await anAccount(operator.store, { quota: 4, paid: true });
    expect(await operator.json('topup', 'show', slug)).to.include({ enabled: false, last_purchase_at: null });
    const { said } = await set(slug, { ...whole, '--enabled': 'yes', '--monthly-cap-cents': '5000' });
    expect(said).to.deep.equal({
      ...{ enabled: true, threshold_percent: 15, customer: 'cus_1', payment_method: 'pm_1', monthly_cap_cents: 5000 },
      pack: { title: 'Auto pack', total: 10, price_cents: 990, currency: 'eur' },
      ...{ last_purchase_at: null, next_possible_at: null },
    });
    expect((await set(slug, { '--monthly-cap-cents': 'none' })).said).to.deep.equal({
      ...said,
      monthly_cap_cents: null,
    });
    expect((await operator.run(['topup', 'show', slug])).out).to.include('EUR 9.90');
  });

  it('D82: topup set refuses to enable without a paid plan, a pack, a price, a payment method or a provider', async () => {
    const enabled = { ...whole, '--enabled': 'yes' };
    for (const wanted of [{}, { quota: 5, paid: false }]) {
      const { slug } = await anAccount(operator.store, wanted);
      expect((await set(slug, enabled)).said).to.include({ code: 'paid_plan_only' });
      expect(await isEnabled(slug)).to.equal(false);
    }
    const { slug } = await anAccount(operator.store, { quota: 5, paid: true });
    for (const missing of [
      '--pack-title',
      '--pack-total',
      '--price-cents',
      '--currency',
      '--customer',
      '--payment-method',
    ]) {
      const { [missing as keyof typeof whole]: _, ...rest } = enabled;
      const another = await anAccount(operator.store, { quota: 5, paid: true });
      expect((await set(another.slug, rest)).said, missing).to.include({ code: 'topup_incomplete' });
    }
    expect((await set(slug, enabled, {})).said).to.include({ code: 'no_provider' });
    expect(await isEnabled(slug)).to.equal(false);
    expect((await operator.run(['topup', 'set', slug, '--threshold', '31'])).code).to.equal(2);
  });

  it('offer set, list and remove keep the catalogue', async () => {
    const offer = (name: string, price: string) =>
      operator.json(
        'offer',
        'set',
        name,
        '--title',
        'Pack',
        '--credits',
        '100',
        '--price-cents',
        price,
        '--currency',
        'eur',
      );
    await offer('large', '5000');
    expect(await offer('small', '990')).to.deep.equal({
      ...{ name: 'small', title: 'Pack', credits: 100, price_cents: 990, currency: 'eur' },
    });
    const names = async () => (await operator.json<{ name: string }[]>('offer', 'list')).map(({ name }) => name);
    expect(await names()).to.deep.equal(['small', 'large']);
    expect(await operator.json('offer', 'remove', 'small')).to.deep.equal({ removed: 'small' });
    expect(await names()).to.deep.equal(['large']);
    expect(await operator.refused('offer', 'remove', 'small')).to.include({ code: 'not_found' });
  });

  it('D88: offer set keeps what is not named, and says what a new offer lacks', async () => {
    const terms = ['--title', 'Pack', '--credits', '100', '--price-cents', '990', '--currency', 'eur'];
    const offer = await operator.json('offer', 'set', 'kept', ...terms);
    const cheaper = { ...offer, price_cents: 790 };
    expect(await operator.json('offer', 'set', 'kept', '--price-cents', '790')).to.deep.equal(cheaper);
    expect(await operator.json('offer', 'set', 'kept', '--title', 'P', '--currency', 'usd')).to.deep.equal({
      ...{ ...cheaper, title: 'P', currency: 'usd' },
    });
    const { code, out } = await operator.run(['offer', 'set', 'new', '--title', 'P', '--credits', '1', '--json']);
    expect({ code, said: JSON.parse(out) }).to.deep.equal({
      code: 2,
      said: { error: '--price-cents, --currency must be given: there is no offer new yet', code: 'usage' },
    });
  });

  it('offer set and topup set refuse a price that Stripe does not charge in its currency, and keep the one before', async () => {
    const { slug } = await anAccount(operator.store, { quota: 4, paid: true });
    const named = ['--title', 'Pack', '--credits', '100'];
    for (const [currency, good, bad] of [
      ['kwd', 1230, 1234],
      ['isk', 50000, 50050],
    ] as const) {
      const pack = { ...whole, '--currency': currency, '--price-cents': String(good) };
      expect((await set(slug, pack)).said.pack).to.include({ price_cents: good, currency });
      expect((await set(slug, { '--price-cents': String(bad) })).said).to.include({ code: 'bad_request' });
      expect(await operator.json('topup', 'show', slug)).to.deep.include({
        pack: { title: 'Auto pack', total: 10, price_cents: good, currency },
      });
      const terms = [...named, '--currency', currency, '--price-cents', String(good)];
      await operator.json('offer', 'set', currency, ...terms);
      const { error } = await operator.refused('offer', 'set', currency, '--price-cents', String(bad));
      expect(error).to.match(/multiple of (10|100)/);
      const kept = (await listOffers(operator.store)).find(({ name }) => name === currency);
      expect(kept).to.include({ price_cents: good });
    }
    await operator.json('offer', 'set', 'euro', ...named, '--currency', 'eur', '--price-cents', '1234');
    expect(await operator.refused('offer', 'set', 'euro', '--currency', 'omr')).to.include({ code: 'bad_request' });
  });

  it('changes of two options of one offer at once are both kept', async () => {
    const { store } = operator;
    await setOffer(store, { name: 'raced', title: 'Pack', credits: 100, price_cents: 990, currency: 'eur' });
    await Promise.all([
      setOffer(store, { name: 'raced', credits: 200 }),
      setOffer(store, { name: 'raced', price_cents: 790 }),
      setOffer(store, { name: 'raced', title: 'Big' }),
    ]);
    const raced = (await listOffers(store)).find(({ name }) => name === 'raced');
    expect(raced).to.deep.equal({ name: 'raced', title: 'Big', credits: 200, price_cents: 790, currency: 'eur' });
  });

  it('D56: user create gives a role and a link, whose secret the record does not keep; user remove takes the role away', async () => {
    const [one, other] = [await anAccount(operator.store), await anAccount(operator.store)];
    const create = (slug: string, role: string) =>
      operator.json('user', 'create', slug, '--email', 'Ada@Example.com', '--role', role);
    const made = await create(one.slug, 'owner');
    expect(made).to.include({ email: 'ada@example.com', role: 'owner' });
    expect(made.sign_in_url).to.match(/^http:\/\/127\.0\.0\.1:8081\/sign-in#[\w-]{22}\.[\w-]{43}$/);
    await create(one.slug, 'viewer');
    await create(other.slug, 'owner');
    const [listed, ...others] = await operator.json<{ email: string; role: string }[]>('user', 'list', one.slug);
    expect(listed).to.include({ email: 'ada@example.com', role: 'viewer' });
    expect(others).to.deep.equal([]);
    const { id, roles } = (await readPerson(operator.store, 'ada@example.com'))!;
    expect(roles).to.deep.equal({ [one.accountId]: 'viewer', [other.accountId]: 'owner' });
    const links = await operator.store.connection.read(['HGETALL', keys.signInLinks(id)]);
    expect(links).to.have.length(6);
    expect(links.join()).not.to.include(String(made.sign_in_url).split('.').at(-1));
    expect(await operator.json('user', 'remove', one.slug, 'ADA@example.com')).to.deep.equal({
      removed: 'ada@example.com',
    });
    expect((await readPerson(operator.store, 'ada@example.com'))?.roles).to.deep.equal({ [other.accountId]: 'owner' });
    expect(await operator.refused('user', 'remove', one.slug, 'ada@example.com')).to.include({ code: 'not_found' });
  });
});

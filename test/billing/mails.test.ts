import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { invoiceRows } from '../../src/billing/invoice.ts';
import { mailedLinkPurpose, makePersonSecret, personIdOf, readPersonSecret } from '../../src/model/person.ts';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { keys } from '../../src/store/keys.ts';
import { endPurchase } from '../../src/store/money/end-purchase.ts';
import { listPurchases } from '../../src/store/money/read-purchases.ts';
import { reversePurchase } from '../../src/store/money/reverse-purchase.ts';
import { setTopup } from '../../src/store/money/set-topup.ts';
import { takePurchase } from '../../src/store/money/take-purchase.ts';
import { invitePerson } from '../../src/store/people/invite-person.ts';
import { mailSignInLink } from '../../src/store/people/mail-sign-in-link.ts';
import { openSession } from '../../src/store/people/open-session.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { invited } from '../support/browser-session.ts';
import { eachWithMailedRecord, type MailSender } from '../support/mail-sender.ts';
import { aSecret } from '../support/people-scenarios.ts';
import { anAccount, type TestStore } from '../support/record.ts';
import { contentOf } from '../support/script-faults.ts';
import { aBuyer, seller, spend, takenPurchase } from '../support/topups.ts';

describe('mails', () => {
  let store: TestStore;
  let sender: MailSender;
  eachWithMailedRecord((made, given) => {
    [store, sender] = [made, given];
  });

  const waiting = async () => ((await store.connection.send(['HKEYS', keys.outbox])) as string[]).length;
  const aMailedBuyer = async (...owners: string[]) => {
    const buyer = await aBuyer(store);
    const add = (email: string, role: 'owner' | 'viewer') => invited(store, buyer.accountId, role, email);
    for (const owner of owners) await add(owner, 'owner');
    await add('viewer@example.com', 'viewer');
    await spend(store, buyer, 5);
    return buyer;
  };
  const pay = async (buyer: Awaited<ReturnType<typeof aMailedBuyer>>) => {
    const purchase = { ...(await takenPurchase(store, buyer)), pack_title: 'Auto <b>&' };
    await endPurchase(store, purchase, { verdict: 'paid', payment: 'pi_1', seller });
    return purchase;
  };

  for (const json of ['{"kind":"in', '{"at":"soon","attempts":0}', '{"at":9999999999999}'])
    it(`are sent although one that is due before them is ${json}, which is given up`, async () => {
      const buyer = await aMailedBuyer('ada@example.com');
      await store.connection.send(['HSET', keys.outbox, 'damaged', json]);
      await store.connection.send(['ZADD', keys.outboxDue, '1', 'damaged']);
      await pay(buyer);
      await sender.send();
      expect(sender.box.mails.map(({ mail }) => mail.subject).join()).to.include('Invoice INV-000001');
      expect(await waiting()).to.equal(0);
      expect(sender.lines.join('\n')).to.include('"mail":"damaged"');
    });

  it('events-7: bring the invoice to every owner, as text and as HTML that say the same', async () => {
    const buyer = await aMailedBuyer('ada@example.com', 'bob@example.com');
    await pay(buyer);
    await sender.send();
    const invoices = sender.box.mails.filter(({ mail }) => mail.subject?.startsWith('Invoice'));
    expect(invoices.map(({ to }) => to)).to.deep.equal(['ada@example.com', 'bob@example.com']);
    const { mail } = invoices[0]!;
    expect(mail.subject).to.equal('Invoice INV-000001: Auto <b>&, EUR 9.90');
    for (const said of [
      'INV-000001',
      'EUR 9.90',
      'Films Ltd',
      '1 Main Street',
      'VAT 0 %',
      'pi_1',
      sender.dashboardUrl,
    ]) {
      expect(mail.text, said).to.include(said);
      expect(mail.html, said).to.include(said);
    }
    expect(mail.html).to.include('Auto &lt;b&gt;&amp;').and.not.include('<b>');
    const [pdf] = mail.attachments;
    expect([pdf!.filename, pdf!.contentType]).to.deep.equal(['INV-000001.pdf', 'application/pdf']);
    const told = execFileSync('pdftotext', ['-layout', '-', '-'], { input: pdf!.content }).toString();
    const read = (text: string) => text.replace(/\s+/g, ' ').trim();
    for (const [name, value] of invoiceRows((await listPurchases(store, buyer.accountId))[0]!)) {
      expect(read(told), name).to.include(name);
      for (const line of value.split('\n')) expect(read(told), name).to.include(read(line));
    }
    expect(mail.headers.get('auto-submitted')).to.equal('auto-generated');
    expect(await waiting()).to.equal(0);
    const { values } = await sender.metrics.mails_total.get();
    expect(values.find(({ labels }) => labels.outcome === 'sent')?.value).to.be.greaterThan(0);
  });

  it('events-7: say in an invoice that was delayed that its payment was refunded meanwhile', async () => {
    const purchase = await pay(await aMailedBuyer('ada@example.com'));
    await reversePurchase(store, purchase, 'refunded', 'pi_1');
    await sender.send();
    const { mail } = sender.box.mails.find(({ mail }) => mail.subject?.startsWith('Invoice'))!;
    expect(mail.text).to.include('was refunded since, and what was left of them has lapsed');
    expect(mail.text).not.to.include('are paid');
  });

  it('tell of a decline, of the monthly cap by its amount, and of what is used', async () => {
    const declined = await aMailedBuyer('ada@example.com');
    const end = { verdict: 'declined', payment: '', reason: 'Your card has expired.' } as const;
    await endPurchase(store, await takenPurchase(store, declined), end);
    const capped = await aMailedBuyer('bob@example.com');
    await setTopup(store, capped.accountId, { monthly_cap_cents: '500' });
    expect(await takePurchase(store, capped.accountId, 1)).to.equal('capped');
    await sender.send();
    const textTo = (to: string) =>
      sender.box.mails
        .filter((one) => one.to === to)
        .map(({ mail }) => `${mail.subject} ${mail.text}`)
        .join('\n');
    expect(textTo('ada@example.com')).to.include('Your card has expired.').and.include('is now disabled');
    expect(textTo('bob@example.com')).to.include('monthly cap of EUR 5.00').and.include('has used 50 %');
  });

  it('tell every operator, and nobody else, of a payment that was taken back, once', async () => {
    for (const email of ['op@example.com', 'ops@example.com']) await invited(store, '', 'operator', email);
    const buyer = await aMailedBuyer('ada@example.com');
    const purchase = await pay(buyer);
    await sender.send();
    sender.box.mails.splice(0);
    for (const _ of [1, 2]) await reversePurchase(store, purchase, 'disputed', 'pi_1');
    await sender.send();
    expect(sender.box.mails.map(({ to }) => to)).to.deep.equal(['op@example.com', 'ops@example.com']);
    const { mail } = sender.box.mails.splice(0)[0]!;
    expect(mail.subject).to.equal(`A payment of ${buyer.slug} was disputed: EUR 9.90`);
    const said = ['is disputed', '10 of its 10 credits', 'top-up of the account is disabled', 'pi_1', 'INV-000001'];
    for (const words of [...said, buyer.slug]) expect(mail.text, words).to.include(words);
    const other = await aMailedBuyer('bob@example.com');
    await reversePurchase(store, await takenPurchase(store, other), 'refunded', 'pi_2');
    await sender.send();
    const { mail: told } = sender.box.mails.find(({ to }) => to === 'op@example.com')!;
    expect(told.text).to.include('was refunded in full').and.include('Its pack was never added');
    expect(told.text).not.to.include('disabled');
  });

  it('tell operators of a dispute after a refund, in one mail when that of the refund was not sent', async () => {
    await invited(store, '', 'operator', 'op@example.com');
    const purchase = await pay(await aMailedBuyer());
    for (const state of ['refunded', 'disputed'] as const) await reversePurchase(store, purchase, state, 'pi_1');
    await sender.send();
    expect(sender.box.mails).to.have.length(1);
    expect(sender.box.mails[0]?.mail.text).to.match(/Answer the dispute.*No unused credit .*top-up .* is disabled/s);
  });

  it('wait for a server that is away or busy, and reach the others meanwhile, each once', async () => {
    await pay(await aMailedBuyer('ada@example.com', 'bob@example.com', 'gone@example.com'));
    await sender.send('smtp://127.0.0.1:1');
    expect(await waiting()).to.equal(2);
    sender.box.refusals.set('bob@example.com', 452).set('gone@example.com', 550);
    store.advance(60_000);
    await sender.send();
    expect(new Set(sender.box.mails.map(({ to }) => to))).to.deep.equal(new Set(['ada@example.com']));
    sender.box.refusals.clear();
    store.advance(120_000);
    await sender.send();
    await sender.send();
    expect(sender.box.mails.map(({ to }) => to).sort()).to.deep.equal([
      ...['ada@example.com', 'ada@example.com', 'bob@example.com', 'bob@example.com'],
    ]);
    expect(new Set(sender.box.mails.map(({ mail }) => mail.messageId)).size).to.equal(4);
    expect(await waiting()).to.equal(0);
  });

  it('of an account without owners are dropped', async () => {
    await aMailedBuyer();
    await sender.send();
    expect([sender.box.mails.length, await waiting()]).to.deep.equal([0, 0]);
  });

  it('bring an invitation to the person alone, with a link that works, and keep its secret sealed until then', async () => {
    const { accountId } = await aMailedBuyer('ada@example.com');
    await sender.send();
    sender.box.mails.splice(0);
    const [email, secret] = ['new@example.com', makePersonSecret(personIdOf('new@example.com'), randomBytes(32))];
    const mailed = { sealed: sender.seal.seal(mailedLinkPurpose, secret), by: 'ada@example.com' };
    await invitePerson(store, { accountId, email, role: 'member', secret, isBound: true, mailed });
    expect(JSON.stringify(await contentOf(store))).not.to.include(secret.split('.')[1]);
    await sender.send();
    await sender.send();
    expect(sender.box.mails.map(({ to }) => to)).to.deep.equal([email]);
    const { mail } = sender.box.mails[0]!;
    expect(mail.subject).to.include('ada@example.com invites you');
    for (const text of [mail.text, mail.html])
      expect(text).to.include(`${sender.dashboardUrl}/sign-in#${secret}`).and.include('member');
    expect(await waiting()).to.equal(0);
  });

  it('bring a link to a person who lost their password, at most one in 15 minutes, and none to anybody else', async () => {
    const { accountId } = await aMailedBuyer('ada@example.com');
    await sender.send();
    sender.box.mails.splice(0);
    const ask = async (email: string) => {
      const secret = makePersonSecret(personIdOf(email), randomBytes(32));
      await mailSignInLink(store, { email, accountId, secret, sealed: sender.seal.seal(mailedLinkPurpose, secret) });
      await sender.send();
      return secret;
    };
    await ask('stranger@example.com');
    const secret = await ask('ada@example.com');
    await ask('ada@example.com');
    expect(sender.box.mails.map(({ to }) => to)).to.deep.equal(['ada@example.com']);
    expect(sender.box.mails[0]!.mail.text).to.include(`/sign-in#${secret}`);
    const made = { session: aSecret('ada@example.com'), oldHash: '', ip: '', agent: '' };
    expect(await openSession(store, { linkHash: readPersonSecret(secret)!.secretHash }, made)).to.equal(true);
    store.advance(16 * 60_000);
    const late = await ask('ada@example.com');
    store.advance(61 * 60_000);
    expect(await openSession(store, { linkHash: readPersonSecret(late)!.secretHash }, made)).to.equal(false);
    expect(sender.box.mails).to.have.length(2);
  });

  it('say until when their sign-in link works, also when the mail server was away for longer', async () => {
    const { accountId } = await aMailedBuyer('ada@example.com');
    const [lost, invited] = ['ada@example.com', 'new@example.com'].map((email) => {
      const secret = makePersonSecret(personIdOf(email), randomBytes(32));
      return { email, accountId, secret, sealed: sender.seal.seal(mailedLinkPurpose, secret) };
    });
    await mailSignInLink(store, lost!);
    const mailed = { sealed: invited!.sealed, by: 'ada@example.com' };
    await invitePerson(store, { ...invited!, role: 'member', isBound: true, mailed });
    const left = (await store.connection.send(['HVALS', keys.outbox])) as string[];
    await sender.send('smtp://127.0.0.1:1');
    store.advance(80 * 3_600_000);
    await sender.send();
    const texts = sender.box.mails.map(({ mail }) => mail.text);
    for (const [kind, hours] of Object.entries({ link: 1, invitation: 72 })) {
      const { at } = left.map((json) => JSON.parse(json)).find((mail) => mail.kind === kind);
      const end = new Date(at + hours * 3_600_000).toISOString().slice(0, 16).replace('T', ' ');
      expect(
        texts.find((text) => text?.includes(`once, until ${end} UTC`)),
        kind,
      ).to.include('/sign-in#');
    }
  });

  it('tell owners once, a week before a key expires, unless it was changed or is inactive', async () => {
    const { accountId } = await anAccount(store, { credits: 1 });
    await invited(store, accountId, 'owner', 'ada@example.com');
    const day = 86_400_000;
    const expires = store.clock.now() + 30 * day;
    const add = (alias: string, sign: string, end = expires) =>
      createKey(store, accountId, { id: `id-${alias}`, alias, hash: sign.repeat(64), expires: end });
    await Promise.all([add('ends', '1'), add('longer', '2'), add('off', '3'), add('soon', '4', expires - 28 * day)]);
    await setKey(store, accountId, 'longer', { expires: expires + 30 * day });
    await setKey(store, accountId, 'off', { active: false });
    const told = async (days: number) => {
      store.advance(days * day);
      for (let n = 0; n < 2; n++) await sweepRecord(store, { job: 90 * day, line: 90 * day });
      await sender.send();
      return sender.box.mails
        .splice(0)
        .map(({ to, mail }) => `${to} ${mail.subject?.replace(/ of .* expires/, ' expires')}`);
    };
    const on = (time: number) => new Date(time).toISOString().slice(0, 10);
    expect(await told(22)).to.deep.equal([]);
    expect(await told(2)).to.deep.equal([`ada@example.com The key ends expires on ${on(expires)}`]);
    expect(await told(20)).to.deep.equal([]);
    expect(await told(10)).to.deep.equal([`ada@example.com The key longer expires on ${on(expires + 30 * day)}`]);
    expect(await store.connection.send(['ZCARD', keys.expiringKeys])).to.equal(0);
  });
});

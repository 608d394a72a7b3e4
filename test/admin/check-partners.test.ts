import { type AddressInfo, createServer, type Server } from 'node:net';
import { expect } from 'chai';
import { checkPartners } from '../../src/admin/check-partners.ts';
import { freePort } from '../support/free-port.ts';
import { type Mailbox, startMailbox } from '../support/mailbox.ts';
import { runProgram } from '../support/operator.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';

const password = 'correct-horse';
const key = 'sk_test_right';
const opened = 'In a cluster networkPolicy.billing must open the way.';

describe('the doctor', () => {
  let box: Mailbox;
  let stripe: StripeStandIn;
  before(async () => {
    [box, stripe] = await Promise.all([startMailbox(), startStripe()]);
    box.users.set('trawl', password);
    box.users.set('50%off', password);
    stripe.keys.add(key);
  });
  after(() => Promise.all([box.stop(), stripe.stop()]));

  const nothing = { smtpUrl: null, stripeKey: null, stripeUrl: null };
  const judge = async (settings: Partial<Parameters<typeof checkPartners>[0]>) =>
    (await checkPartners({ ...nothing, ...settings })).map(({ level, about, text }) => `${level} ${about}: ${text}`);
  const mailUrl = (login: string) => box.url.replace('//', `//${login}@`);

  it('asks mail server and payment provider only where they are set', async () => {
    expect(await judge({})).to.deep.equal([]);
  });

  it('says that the mail server takes its password, without a mail', async () => {
    const { host } = new URL(box.url);
    expect(await judge({ smtpUrl: mailUrl(`trawl:${password}`) })).to.deep.equal([
      `ok mail: The mail server ${host} takes the login of trawl, without TLS.`,
    ]);
    expect(await judge({ smtpUrl: mailUrl(`50%off:${password}`) }), 'a user with a bare percent sign').to.deep.equal([
      `ok mail: The mail server ${host} takes the login of 50%off, without TLS.`,
    ]);
    expect(await judge({ smtpUrl: box.url })).to.deep.equal([
      `ok mail: The mail server ${host} answers, without TLS; TRAWL_SMTP_URL names no user.`,
    ]);
    expect(box.mails).to.deep.equal([]);
  });

  it('names a wrong password of mail, which it does not show', async () => {
    const [found] = await judge({ smtpUrl: mailUrl('trawl:wrong-horse') });
    expect(found).to.match(
      /^problem mail: The mail server \S+ refuses the user or password of TRAWL_SMTP_URL: 535 .*\.$/,
    );
    expect(found).to.not.include('horse');
  });

  it('names a mail server that is away, is none, or offers no login', async () => {
    const port = await freePort();
    expect(await judge({ smtpUrl: `smtp://127.0.0.1:${port}` })).to.deep.equal([
      `problem mail: The mail server 127.0.0.1:${port} cannot be asked: connect ECONNREFUSED 127.0.0.1:${port}. ${opened}`,
    ]);
    const servers = await Promise.all([
      speak('HTTP/1.1 400 Bad Request\r\n\r\n', ''),
      speak('220 hello\r\n', '250 hello\r\n'),
    ]);
    try {
      const [web, open] = servers.map((server) => `127.0.0.1:${(server.address() as AddressInfo).port}`);
      expect((await judge({ smtpUrl: `smtp://${web}` }))[0]).to.match(
        /^problem mail: The mail server \S+ cannot be asked: .*greeting/i,
      );
      expect(await judge({ smtpUrl: `smtp://trawl:${password}@${open}` })).to.deep.equal([
        `note mail: The mail server ${open} offers no login, so user and password of TRAWL_SMTP_URL are not used; it answers without TLS.`,
      ]);
    } finally {
      for (const server of servers) server.close();
    }
  });

  it('says that Stripe takes its key, or refuses it, without a charge', async () => {
    const ask = (stripeKey: string) => judge({ stripeKey, stripeUrl: stripe.url });
    expect(await ask(key)).to.deep.equal(['ok stripe: Stripe takes TRAWL_STRIPE_KEY, a key of the test mode.']);
    expect(await ask('sk_live_wrong')).to.deep.equal([
      'problem stripe: Stripe refuses TRAWL_STRIPE_KEY: the key is wrong or has ended.',
    ]);
    expect([stripe.asked, stripe.visits, stripe.charges]).to.deep.equal([[], [], []]);
  });

  it('names the error of a connection to Stripe in one sentence', async () => {
    const port = await freePort();
    expect(await judge({ stripeKey: key, stripeUrl: `http://127.0.0.1:${port}` })).to.deep.equal([
      `problem stripe: Stripe cannot be asked: connect ECONNREFUSED 127.0.0.1:${port}. ${opened}`,
    ]);
    const plain = await speak('HTTP/1.1 400 Bad Request\r\n\r\n', '');
    try {
      const url = `https://127.0.0.1:${(plain.address() as AddressInfo).port}`;
      expect((await judge({ stripeKey: key, stripeUrl: url }))[0]).to.match(
        /cannot be asked: .* EPROTO .*[^.:\s]\. In a cluster/,
      );
    } finally {
      plain.close();
    }
  });

  it('exits with 1 for a wrong password of mail, and lists it beside Stripe', async () => {
    const env = {
      PATH: '',
      TRAWL_SMTP_URL: mailUrl('trawl:wrong-horse'),
      TRAWL_STRIPE_KEY: key,
      TRAWL_STRIPE_URL: stripe.url,
    };
    const from = { TRAWL_MAIL_FROM: 'trawl@example.com' };
    const { code, out } = await runProgram(process.execPath, ['src/main.ts', 'doctor'], { ...env, ...from });
    expect(code).to.equal(1);
    expect(out)
      .to.match(/^problem +mail +The mail server 127\.0\.0\.1:\d+ refuses the user or password/m)
      .and.match(/^ok +stripe +Stripe takes TRAWL_STRIPE_KEY/m)
      .and.not.include('horse');
  });
});

/** A server that greets, and says one thing to everything else. */
function speak(greeting: string, answer: string): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write(greeting);
    socket.on('data', () => socket.write(answer));
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import Stripe from 'stripe';
import { makeSeal } from '../../src/base/seal.ts';
import { makeLink } from '../../src/model/file-link.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { openRedisClient } from '../../src/store/redis/redis-client.ts';
import { type IdentityProvider, startIdentityProvider } from '../support/identity-provider.ts';
import { type Mailbox, startMailbox } from '../support/mailbox.ts';
import { type OpenidSignIns, startOpenidSignIns } from '../support/openid-sign-ins.ts';
import { type OperatorServer, startOperatorServer } from '../support/operator-server.ts';
import { readPreparation, runProcedure } from '../support/procedures.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { anAccount, anotherKey, storeOf, type TestStore } from '../support/record.ts';
import { startTestServer, type TestRecord } from '../support/redis.ts';
import { makeRedisUser, refusedCommands } from '../support/redis-rights.ts';
import { invite } from '../support/restore-scene.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { checkLedger, makeService, type Service } from '../support/service.ts';
import { type ServiceLoad, startLoad } from '../support/service-load.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';
import { aBuyer } from '../support/topups.ts';
import { until } from '../support/until.ts';

const secret = () => randomBytes(32).toString('base64');
const signing = new Stripe('sk_test_unused');

/** Settings that come from files, with the names of these. */
const files = {
  TRAWL_REDIS_URL: 'redis',
  TRAWL_STRIPE_KEY: 'stripe',
  TRAWL_STRIPE_WEBHOOK_SECRET: 'events',
  TRAWL_SMTP_URL: 'smtp-url',
  TRAWL_OIDC_CLIENT_SECRET: 'openid',
  TRAWL_SECRET: 'secret',
  TRAWL_SECRET_OLD: 'secret-old',
} as const;
type FileName = (typeof files)[keyof typeof files] | 's3' | 'clock';

describe('docs/operate.md: a secret that changes while jobs run', function () {
  this.timeout(600_000);
  const service: Service = makeService({ TRAWL_WORKERS: '1', TRAWL_DURABILITY: 'relaxed' });
  const fileOf = (name: FileName | '') => join(service.folder, `secret.${name}`);
  const write = (name: FileName, text: string) => writeFileSync(fileOf(name), text);
  const [oldSecret, newSecret] = [secret(), secret()];
  let redis: TestRecord;
  let s3: TestS3;
  let stripe: StripeStandIn;
  let mailbox: Mailbox;
  let receiver: Receiver;
  let films: Source;
  let people: IdentityProvider;
  let signIns: OpenidSignIns;
  let server: OperatorServer;
  let store: TestStore;
  let customer: Awaited<ReturnType<typeof anAccount>>;
  let key: string;
  let load: ServiceLoad;
  const ids: string[] = [];
  before(async () => {
    [redis, s3, stripe] = await Promise.all([startTestServer(), startS3(), startStripe()]);
    [mailbox, receiver, films] = await Promise.all([startMailbox(), startReceiver(), startSource()]);
    people = await startIdentityProvider();
    // What is tested outlives no power failure: a busy disk would only delay it.
    await redis.connection.send(['CONFIG', 'SET', 'appendfsync', 'no']);
    write('redis', await makeRedisUser(redis, { password: 'first' }));
    write('s3', profileOf(await s3.addUser('FIRST')));
    stripe.keys.add('sk_test_first');
    write('stripe', 'sk_test_first');
    write('events', 'whsec_first');
    mailbox.users.set('first', 'word');
    write('smtp-url', mailUrl('first'));
    write('openid', [...people.secrets][0]!);
    for (const name of ['secret', 'secret-old'] as const) write(name, oldSecret);
    write('clock', '0');
    await service.start(settings());
    store = storeOf(redis.connection);
    customer = await anAccount(store, { credits: 1_000 });
    key = await anotherKey(store, customer.accountId);
    const back = `${dashboardUrl()}/api/sign-in/openid/back`;
    people.open(back, { ada: { email: 'ada@example.com', email_verified: true } });
    people.become('ada');
    await invite(store, customer.accountId, 'ada@example.com');
    [load, signIns] = [beginLoad(), startOpenidSignIns(dashboardUrl())];
    server = await startOperatorServer(works);
    await another();
  });
  after(async () => {
    // A test that failed says why; the callers only have to end.
    await load?.stop().catch(() => undefined);
    await signIns?.stop();
    await service.close();
    for (const one of [server, films, people, receiver, mailbox, stripe, s3, redis]) await one?.stop();
  });

  const beginLoad = () => startLoad({ service, key, receiver, film: `${films.url}/films/clip.mp4` });
  const mailUrl = (user: string) => mailbox.url.replace('://', `://${user}:word@`);
  const settings = () => ({
    ...Object.fromEntries(Object.entries(files).map(([setting, name]) => [`${setting}_FILE`, fileOf(name)])),
    ...{ TRAWL_OBJECTS: 's3', TRAWL_S3_BUCKET: s3.settings.s3Bucket, TRAWL_S3_ENDPOINT: s3.settings.s3Endpoint },
    ...{ TRAWL_S3_PATH_STYLE: 'true', AWS_SHARED_CREDENTIALS_FILE: fileOf('s3'), TRAWL_CLOCK_FILE: fileOf('clock') },
    ...{ TRAWL_STRIPE_URL: stripe.url, TRAWL_MAIL_FROM: 'trawl@example.com' },
    ...{ TRAWL_OIDC_ISSUER: people.issuer, TRAWL_OIDC_CLIENT_ID: people.clientId },
  });
  const dashboardUrl = () => /^Its dashboard is at (\S+)$/m.exec(service.up().output())![1]!;
  const seen = (setting: string) =>
    service
      .up()
      .output()
      .split('\n')
      .filter((line) => line.includes('a secret has a new value') && line.includes(`"${setting}"`)).length;
  const waited: Record<string, number> = {};
  /** Waits until the service has the value that a procedure has just written. */
  const see = (setting: string) => async () => {
    waited[setting] = (waited[setting] ?? 0) + 1;
    await until(() => seen(setting) >= waited[setting]!, 20, `the service reads ${setting} again`);
  };
  const signer = async () => (await fetch(load.links[0]!, { redirect: 'manual' })).headers.get('location') ?? '';
  const works = {
    ...Object.fromEntries(Object.keys(files).map((setting) => [`SEE_${setting}`, see(setting)])),
    MAKE_S3: async () => writeFileSync(`${fileOf('s3')}.new`, profileOf(await s3.addUser('SECOND'))),
    SEE_S3: () =>
      until(async () => (await signer()).includes('Credential=SECOND'), 20, 'links are signed with the new key'),
    END_S3: () => s3.removeUser('FIRST'),
    MAKE_STRIPE: async () => stripe.keys.add('sk_test_second'),
    END_STRIPE: async () => stripe.keys.delete('sk_test_first'),
    MAKE_MAIL: async () => mailbox.users.set('second', 'word'),
    END_MAIL: async () => mailbox.users.delete('first'),
    MAKE_OPENID: async () => people.secrets.add('second'),
    END_OPENID: async () => {
      // No sign-in that began with the old secret is under way then.
      await signIns.another();
      people.secrets.delete([...people.secrets][0]!);
    },
  };
  /** A command that writes the value of this variable, and waits until the service has it. */
  const use = (setting: keyof typeof files, variable: string = setting) =>
    `printf %s "$${variable}" > '${fileOf(files[setting])}'; ${server.commands[`SEE_${setting}`]}`;
  /** Waits until a job and a sign-in that begin from now on have ended, and checks that nothing was refused. */
  const another = async () => {
    await Promise.all([load.another(), signIns.another()]);
    expect([load.complaints, signIns.complaints]).to.deep.equal([[], []]);
  };
  const run = async (title: string, names: Record<string, string>, lines = ''): Promise<string> => {
    const own = { ...settings(), TRAWL_DATA: service.data, TRAWL_DURABILITY: 'relaxed', ...names };
    const { code, out, err } = await runProcedure(title, own, (script) => lines + script);
    expect(code, `${out}${err}`).to.equal(0);
    await another();
    return out;
  };
  const change = (names: Record<string, string>, lines?: string) =>
    run('change another password or key', { WAIT_SECONDS: '0', ...names }, lines);
  /** Lets an account use its last credit, so that a pack is bought and its invoice mailed. */
  const buyAndMail = async () => {
    const email = `owner-${stripe.charges.length}@example.com`;
    const buyer = await aBuyer(store, {}, { quota: 1 });
    await invite(store, buyer.accountId, email);
    const key = await anotherKey(store, buyer.accountId);
    const query = encodeURIComponent(`${films.url}/films/clip.mp4`);
    expect((await service.ask(key, `/v1/media/metadata?query=${query}`)).status).to.equal(200);
    await until(
      () => mailbox.mails.some(({ to, mail }) => to === email && mail.attachments.length > 0),
      40,
      'the invoice',
    );
    expect(stripe.charges.filter(({ customer }) => customer === `cus_${buyer.slug}`)).to.have.length(1);
    expect((await service.ask(key, '/v1/usage')).json.remaining).to.equal(10);
  };
  /** The status that an event of Stripe gets, which is signed with these secrets. */
  const tell = async (...secrets: string[]): Promise<number> => {
    const payload = JSON.stringify({
      id: 'evt',
      object: 'event',
      livemode: false,
      type: 'customer.created',
      data: { object: {} },
    });
    const signed = secrets.map((one) => signing.webhooks.generateTestHeaderString({ payload, secret: one }));
    const header = [signed[0], ...signed.slice(1).map((one) => one.slice(one.indexOf('v1=')))].join(',');
    const url = dashboardUrl();
    const options = { method: 'POST', body: payload, headers: { 'stripe-signature': header } };
    return (await fetch(`${url}/stripe/webhook`, options)).status;
  };

  it('changes the password of Redis for a user with exactly the rights that the page names', async () => {
    const url = readFileSync(fileOf('redis'), 'utf8');
    await run('change the password of Redis', {
      ...{ REDIS_ADMIN_URL: redis.url, REDIS_USER: 'trawl', OLD_PASSWORD: 'first', NEW_PASSWORD: 'second' },
      ...{ NEW_URL: url.replace('first', 'second'), USE_TRAWL_REDIS_URL: use('TRAWL_REDIS_URL', 'NEW_URL') },
    });
    const failure = await openRedisClient(url).catch((error: Error) => error);
    expect(String(failure)).to.include('WRONGPASS');
  });

  it('changes the keys of S3', async () => {
    const old = await signer();
    await change({
      MAKE_NEW: server.commands.MAKE_S3!,
      USE_NEW: `mv '${fileOf('s3')}.new' '${fileOf('s3')}'; ${server.commands.SEE_S3}`,
      END_OLD: server.commands.END_S3!,
    });
    expect((await fetch(old)).status).to.equal(403);
  });

  it('changes the key of Stripe', async () => {
    await buyAndMail();
    const USE_NEW = `NEW=sk_test_second; ${use('TRAWL_STRIPE_KEY', 'NEW')}`;
    await change({ MAKE_NEW: server.commands.MAKE_STRIPE!, USE_NEW, END_OLD: server.commands.END_STRIPE! });
    await buyAndMail();
    expect(stripe.refusedKeys).to.deep.equal([]);
  });

  it("changes the secret of Stripe's events", async () => {
    expect([await tell('whsec_first'), await tell('whsec_second')]).to.deep.equal([200, 400]);
    expect(await tell('whsec_first', 'whsec_second')).to.equal(200);
    const USE_NEW = `NEW=whsec_second; ${use('TRAWL_STRIPE_WEBHOOK_SECRET', 'NEW')}`;
    await change({ MAKE_NEW: 'true', USE_NEW, END_OLD: 'true' });
    expect(await tell('whsec_first', 'whsec_second')).to.equal(200);
    expect([await tell('whsec_first'), await tell('whsec_second')]).to.deep.equal([400, 200]);
  });

  it('changes the password of mail', async () => {
    const lines = readPreparation('Secrets', 'install').replaceAll('/etc/trawl/', fileOf(''));
    const names = {
      ...{ MAKE_NEW: server.commands.MAKE_MAIL!, END_OLD: server.commands.END_MAIL! },
      USE_NEW: `TRAWL_SMTP_URL='${mailUrl('second')}'; eval "$USE_TRAWL_SMTP_URL"`,
      // Seconds may be too few on a busy machine.
      'BASH_FUNC_sleep%%': `() { [ "$1" = 0 ] || ${server.commands.SEE_TRAWL_SMTP_URL}; }`,
    };
    await change(names, lines);
    await buyAndMail();
    expect(mailbox.refusedLogins).to.deep.equal([]);
  });

  it('changes the client secret of OpenID Connect while people sign in', async () => {
    const USE_NEW = `NEW=second; ${use('TRAWL_OIDC_CLIENT_SECRET', 'NEW')}`;
    await change({ MAKE_NEW: server.commands.MAKE_OPENID!, USE_NEW, END_OLD: server.commands.END_OPENID! });
    expect(people.refusedSecrets).to.deep.equal([]);
  });

  it('changes TRAWL_SECRET in steps between which every link lives, and ends the old value with the last one', async () => {
    const links = [...load.links];
    const names = { OLD_SECRET: oldSecret, NEW_SECRET: newSecret, USE_TRAWL_SECRET_OLD: use('TRAWL_SECRET_OLD') };
    await run('change TRAWL_SECRET', { ...names, USE_TRAWL_SECRET: use('TRAWL_SECRET') });
    for (const link of links) expect((await fetch(link, { redirect: 'manual' })).status, link).to.equal(307);
    await Promise.all([load.stop(), signIns.stop()]);
    expect([load.complaints, signIns.complaints]).to.deep.equal([[], []]);
    ids.push(...load.jobs);
    write('clock', String(25 * 3_600));
    await until(async () => (await fetch(links[0]!)).status === 410, 20, 'a day later the files are gone');
    [load, signIns] = [beginLoad(), startOpenidSignIns(dashboardUrl())];
    await another();
    const job = (await readJob(store, /[/]files[/]([^/]+)/.exec(load.links[0]!)![1]!))!;
    const { sign } = makeSeal({ secret: Buffer.from(oldSecret, 'base64') });
    const ofOld = makeLink(job, store.clock.now() + 26 * 3_600_000, service.up().url, sign)!;
    expect((await fetch(ofOld)).status).to.equal(200);
    expect(await run('finish a new TRAWL_SECRET', names)).to.match(/accounts were looked at/);
    expect((await fetch(ofOld)).status).to.equal(403);
  });

  it('loses nothing: each job is charged once and told once, no right is missing, and new connections open', async () => {
    await signIns.stop();
    const clients = (await redis.connection.send(['CLIENT', 'KILL', 'USER', 'trawl'])) as number;
    expect(clients).to.be.at.least(2);
    const again = () =>
      load.another().then(
        () => true,
        () => false,
      );
    await until(again, 60, 'jobs go on over new connections');
    await load.stop();
    ids.push(...load.jobs);
    const jobs = await Promise.all(ids.map((id) => readJob(store, id)));
    await checkLedger(
      store,
      customer.accountId,
      jobs.filter((job) => job !== null),
    );
    expect(ids.filter((id) => receiver.of(id).length !== 1)).to.deep.equal([]);
    expect(jobs.map((job) => job?.status)).to.deep.equal(ids.map(() => 'CompletedJob'));
    expect(await refusedCommands(redis)).to.deep.equal([]);
  });
});

/** The file of AWS that has these keys. */
function profileOf(keys: Readonly<Record<string, string>>): string {
  return `[default]\n${Object.entries(keys)
    .map(([name, value]) => `${name.toLowerCase()} = ${value}\n`)
    .join('')}`;
}

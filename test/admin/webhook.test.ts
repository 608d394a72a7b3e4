import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { endBatch } from '../../src/store/batches/end-batch.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { dueWebhooks } from '../../src/store/webhooks/due-webhooks.ts';
import { endWebhook } from '../../src/store/webhooks/end-webhook.ts';
import { takeWebhook } from '../../src/store/webhooks/take-webhook.ts';
import { anAdmittedBatch, cancelJobs } from '../support/batch-scenarios.ts';
import { type Operator, type Shape, startOperator } from '../support/operator.ts';
import { aDownload, anAccount, aRunningJob, completed, holder } from '../support/record.ts';
import { putDeliveries } from '../support/webhooks.ts';

const url = 'https://hooks.example.com/done';
const webhook = { url, receiver: 'hooks.example.com/abc', authorization: 'sealed' };

describe('webhooks of an account', () => {
  let operator: Operator;
  let caller: Awaited<ReturnType<typeof anAccount>>;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());
  beforeEach(async () => {
    caller = await anAccount(operator.store, { credits: 10 });
  });

  const aDue = async (authorization = webhook.authorization) => {
    const work = { ...aDownload, webhook: { ...webhook, authorization } };
    const job = await aRunningJob(operator.store, caller, { work });
    await settleJob(operator.store, holder, job, completed);
    return job.id;
  };
  const attempt = async (job: string, verdict: 'delivered' | 'again' | 'refused', status: number | null) => {
    const due = { receiver: webhook.receiver, id: job };
    const taken = await takeWebhook(operator.store, due, 20_000);
    return endWebhook(operator.store, due, taken?.attempt ?? 0, { verdict, status }, 5_000);
  };
  const list = (...options: string[]) => operator.json<Shape[]>('webhook', 'list', caller.slug, ...options);

  it('are listed newest first, with the state of their delivery', async () => {
    const [delivered, refused, again, due] = [await aDue(), await aDue(), await aDue(), await aDue()];
    await attempt(delivered, 'delivered', 204);
    await attempt(refused, 'refused', null);
    const before = operator.store.clock.now();
    await attempt(again, 'again', 500);
    const listed = await list();
    expect(listed.map(({ next_at: _, ...rest }) => rest)).to.deep.equal([
      { job: due, kind: 'job', url, status: 'due', attempts: 0, last_status: null },
      { job: again, kind: 'job', url, status: 'due', attempts: 1, last_status: 500 },
      { job: refused, kind: 'job', url, status: 'failed', attempts: 1, last_status: null },
      { job: delivered, kind: 'job', url, status: 'delivered', attempts: 1, last_status: 204 },
    ]);
    expect(listed.slice(2).map(({ next_at }) => next_at)).to.deep.equal([null, null]);
    expect(Date.parse(String(listed[1]?.next_at))).to.be.within(before + 5_000, operator.store.clock.now() + 5_000);
  });

  it('are narrowed to failed ones and to a number', async () => {
    const [first, second] = [await aDue(), await aDue(), await aDue()];
    for (const job of [first, second]) await attempt(job, 'refused', null);
    expect((await list('--failed')).map(({ job }) => job)).to.deep.equal([second, first]);
    expect((await list('--failed', '--limit', '1')).map(({ job }) => job)).to.deep.equal([second]);
    const states = Array.from({ length: 2_100 }, () => 'delivered');
    await putDeliveries(operator.store, caller.accountId, states, operator.store.clock.now());
    expect(
      (await list('--failed')).map(({ job }) => job),
      'behind many others',
    ).to.deep.equal([second, first]);
    expect(await list('--limit', '2050')).to.have.length(2_050);
    expect(await operator.refused('webhook', 'list', 'nobody')).to.include({ code: 'not_found' });
  });

  it('webhooks that have ended are due again after a replay, with all attempts', async () => {
    const job = await aDue();
    await attempt(job, 'refused', 403);
    const before = operator.store.clock.now();
    const { next_at, ...rest } = await operator.json('webhook', 'replay', job);
    expect(rest).to.deep.equal({ job, kind: 'job', url, status: 'due', attempts: 0, last_status: null });
    expect(Date.parse(String(next_at))).to.be.within(before - 5, operator.store.clock.now());
    const { due } = await dueWebhooks(operator.store, 1000);
    expect(due).to.deep.include({ receiver: webhook.receiver, id: job, at: Date.parse(String(next_at)) });
    expect(await attempt(job, 'delivered', 200)).to.equal('delivered');
    await operator.json('webhook', 'replay', job.toUpperCase());
  });

  it('are not replayed before their delivery has ended, nor for a job without one', async () => {
    const job = await aDue();
    expect(await operator.refused('webhook', 'replay', job)).to.deep.equal({
      error: 'The delivery has not ended yet',
      code: 'not_ended',
    });
    const silent = await aRunningJob(operator.store, caller);
    await settleJob(operator.store, holder, silent, completed);
    for (const other of [silent.id, randomUUID()]) {
      expect(await operator.refused('webhook', 'replay', other)).to.include({ code: 'not_found' });
    }
  });

  it('are not replayed where no TRAWL_SECRET opens their authorization, or the secret of their account', async () => {
    const [secret, former] = [randomBytes(32), randomBytes(32)];
    const [seal, old] = [makeSeal({ secret }), makeSeal({ secret: former })];
    const jobs = [await aDue(old.seal('webhook', 'Bearer x')), await aDue(seal.seal('webhook', 'Bearer x'))];
    for (const job of jobs) await attempt(job, 'refused', 403);
    const replay = async (job: string) => {
      const env = { TRAWL_SECRET: secret.toString('base64') };
      const { error, status } = JSON.parse((await operator.run(['webhook', 'replay', job, '--json'], env)).out);
      return error ?? status;
    };
    const [lost = '', kept = ''] = jobs;
    expect(await replay(lost)).to.equal(
      'Bad Request: the webhook_authorization cannot be read since the secret of the service was changed: start a new job or batch that names it',
    );
    await setAccount(operator.store, caller.accountId, { webhook_secret: old.seal('webhook_secret', 'whsec_x') });
    expect(await replay(kept)).to.equal(
      'Bad Request: the webhook secret of the account cannot be read since the secret of the service was changed: make a new one',
    );
    expect((await list()).map(({ status }) => status)).to.deep.equal(['failed', 'failed']);
    await setAccount(operator.store, caller.accountId, { webhook_secret: seal.seal('webhook_secret', 'whsec_x') });
    expect(await replay(kept)).to.equal('due');
  });

  it('of batches stand in the list and are delivered again by the id of the batch', async () => {
    const { id } = await anAdmittedBatch(operator.store, caller, 2, { webhook });
    await cancelJobs(operator.store, id);
    expect(await list()).to.deep.equal([]);
    await endBatch(operator.store, id);
    await attempt(id, 'refused', 410);
    const shown = { job: id, kind: 'batch', url, status: 'failed', attempts: 1, last_status: 410, next_at: null };
    expect(await list('--failed')).to.deep.equal([shown]);
    const { next_at, ...rest } = await operator.json('webhook', 'replay', id);
    expect(rest).to.deep.equal({ job: id, kind: 'batch', url, status: 'due', attempts: 0, last_status: null });
    expect((await dueWebhooks(operator.store, 1000)).due).to.deep.include({
      receiver: webhook.receiver,
      id,
      at: Date.parse(String(next_at)),
    });
    const { id: silent } = await anAdmittedBatch(operator.store, caller, 1);
    await cancelJobs(operator.store, silent);
    await endBatch(operator.store, silent);
    expect(await operator.refused('webhook', 'replay', silent)).to.include({ code: 'not_found' });
  });

  it('are printed as a table, and a replay as fields, without --json', async () => {
    expect((await operator.run(['webhook', 'list', caller.slug])).out).to.equal('There are no webhooks.\n');
    const job = await aDue();
    await attempt(job, 'refused', null);
    expect((await operator.run(['webhook', 'list', caller.slug])).out).to.match(
      /^job +kind +status +attempts +answer +next \(UTC\) +url\n[0-9a-f-]{36} {2}job +failed +1 +- +- +https:\/\/hooks.example.com\/done\n$/,
    );
    expect((await operator.run(['webhook', 'replay', job])).out).to.match(/^status +due$/m);
  });
});

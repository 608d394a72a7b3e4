import { randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { servedUrlsFile } from '../../src/admin/served-urls.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { checkLink } from '../../src/model/file-link.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { removeFile } from '../../src/store/jobs/remove-file.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { endWebhook } from '../../src/store/webhooks/end-webhook.ts';
import { takeWebhook } from '../../src/store/webhooks/take-webhook.ts';
import { type Operator, type Shape, startOperator } from '../support/operator.ts';
import {
  aDownload,
  admitted,
  anAccount,
  aRunningJob,
  completed,
  failed,
  holder,
  startNext,
  theJob,
} from '../support/record.ts';
import { read } from '../support/tree.ts';

const secret = randomBytes(32);
const webhook = { url: 'https://hooks.example.com/', receiver: 'hooks.example.com', authorization: '' };

describe('jobs', () => {
  let operator: Operator;
  let caller: Awaited<ReturnType<typeof anAccount>>;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());
  beforeEach(async () => {
    caller = await anAccount(operator.store, { credits: 10 });
  });
  const env = { TRAWL_SECRET: secret.toString('base64'), TRAWL_PUBLIC_URL: 'https://trawl.example.com' };

  it('a completed job is shown as to its caller, with its account and a link that opens the file', async () => {
    const args = { ...aDownload.args, webhook_authorization: 'never shown' };
    const job = await aRunningJob(operator.store, caller, { work: { ...aDownload, args } });
    await settleJob(operator.store, holder, job, completed);
    const { code, out } = await operator.run(['job', 'show', job.id, '--json'], env);
    const shown = JSON.parse(out);
    expect([code, shown.id, shown.status, shown.account]).to.deep.equal([0, job.id, 'CompletedJob', caller.slug]);
    expect(shown.args.webhook_authorization).to.equal('***');
    const link = new URL(shown.result.response);
    expect(link.origin).to.equal('https://trawl.example.com');
    const { verify } = makeSeal({ secret });
    expect(checkLink(link.pathname + link.search, Date.now(), verify)).to.include({ is: 'good', job: job.id });
    const unsealed = await operator.run(['job', 'show', job.id, '--json']);
    expect([unsealed.code, JSON.parse(unsealed.out).code]).to.deep.equal([1, 'unavailable']);
  });

  it('have a link to where trawl up answers, unless the environment of the command names another place', async () => {
    const job = await aRunningJob(operator.store, caller);
    await settleJob(operator.store, holder, job, completed);
    const { TRAWL_SECRET } = env;
    const originBy = async (more: Record<string, string>) => {
      const { out } = await operator.run(['job', 'show', job.id, '--json'], { TRAWL_SECRET, ...more });
      return new URL(JSON.parse(out).result.response).origin;
    };
    expect(await originBy({})).to.equal('http://127.0.0.1:8080');
    const urls = { publicUrl: 'http://127.0.0.1:7001', dashboardUrl: 'http://127.0.0.1:7002' };
    writeFileSync(join(operator.data, servedUrlsFile), JSON.stringify(urls));
    expect(await originBy({})).to.equal(urls.publicUrl);
    expect(await originBy({ TRAWL_DASHBOARD_PORT: '7003' })).to.equal(urls.publicUrl);
    expect(await originBy({ TRAWL_PORT: '7004' })).to.equal('http://127.0.0.1:7004');
    // Port 0 is any free one, which only the trawl up that took it knows.
    expect(await originBy({ TRAWL_PORT: '0', TRAWL_HOST: '127.0.0.1' })).to.equal(urls.publicUrl);
    expect(await originBy({ TRAWL_PUBLIC_URL: 'https://trawl.example.com' })).to.equal('https://trawl.example.com');
  });

  it('a waiting job is shown with its position in the queue, and a running one without a result', async () => {
    const first = await aRunningJob(operator.store, caller);
    const [second, third] = [await admitted(operator.store, caller), await admitted(operator.store, caller)];
    const waiting = await operator.json<{ queue: object }>('job', 'show', third);
    expect(waiting.queue).to.deep.equal({ position: 2, eta_seconds: null, reason: 'It waits for a free worker' });
    expect(await operator.json('job', 'show', second)).to.include({ status: 'QueuedJob', account: caller.slug });
    expect(await operator.json('job', 'show', first.id)).to.include({ success: null, result: null });
  });

  it('a failed job is explained by its attempts, money and webhook in order of time', async () => {
    const job = await aRunningJob(operator.store, caller, { work: { ...aDownload, webhook } });
    await retryJob(operator.store, holder, job, {
      counts: 'interruption',
      code: 'worker_lost',
      text: 'its node was shut down',
      notBefore: 0,
    });
    let next = await startNext(operator.store);
    while (next?.id !== job.id) next = await startNext(operator.store);
    await settleJob(operator.store, holder, next, failed);
    const due = { receiver: webhook.receiver, id: job.id };
    await takeWebhook(operator.store, due, 20_000);
    await endWebhook(operator.store, due, 1, { verdict: 'refused', status: null }, 5_000);
    const told = await operator.json<Shape[]>('job', 'explain', job.id);
    const words = (text: unknown) => String(text).replace(/\d+ ms$/, 'some ms');
    expect(told.map(({ source, text }) => [source, words(text)])).to.deep.equal([
      ['job', 'It is accepted (/v1/video/download), and one credit is held'],
      ['attempt', 'Attempt 1 begins'],
      ['attempt', 'Attempt 1 ends: worker_lost (its node was shut down), which counts as an interruption'],
      ['attempt', 'Attempt 2 begins'],
      ['attempt', 'Attempt 2 ends: private'],
      ['job', 'It ends: Error (private), This content is private; the hold is released, and nothing is charged'],
      ['webhook', 'Its webhook is due'],
      ['webhook', 'Attempt 1 to deliver its webhook had no answer after some ms'],
      ['webhook', 'Its webhook is failed with no answer'],
    ]);
    const times = told.map(({ at }) => Date.parse(String(at)));
    expect(times).to.deep.equal([...times].sort((a, b) => a - b));
    const shown = await operator.run(['job', 'explain', job.id]);
    expect(shown.out).to.match(/^at \(UTC\) +source +text\n[\d: -]{19} {2}job +It is accepted/);
  });

  it('a waiting job is explained by the reason', async () => {
    const id = await admitted(operator.store, caller);
    const explain = async () => (await operator.json<Shape[]>('job', 'explain', id)).at(-1)?.text;
    expect(await explain()).to.equal('It waits for a free worker');
    let job = await startNext(operator.store);
    while (job?.id !== id) job = await startNext(operator.store);
    expect(await explain()).to.equal('It is about to start');
    const stage = 'The image of the worker is being fetched';
    const told = { progress: 0, stage, speed_bytes: null, eta_seconds: null, running: false };
    await noteProgress(operator.store, await theJob(operator.store, id), 1, told);
    expect(await explain()).to.equal(stage);
  });

  it('a completed job is explained by its charge and the removal of its file', async () => {
    const job = await aRunningJob(operator.store, caller);
    await settleJob(operator.store, holder, job, completed);
    for (let n = 0; n < 3; n++)
      await settleJob(operator.store, holder, await aRunningJob(operator.store, caller), failed);
    await removeFile(operator.store, await theJob(operator.store, job.id));
    const told = await operator.json<Shape[]>('job', 'explain', job.id);
    const words = (text: unknown) => String(text).replace(/[\d.]+ (ms|s|min \d+ s) after/, 'some time after');
    expect(told.map(({ source, text }) => [source, words(text)])).to.deep.equal([
      ['job', 'It is accepted (/v1/video/download), and one credit is held'],
      ['attempt', 'Attempt 1 begins'],
      ['attempt', 'Attempt 1 ends: completed'],
      ['ledger', '1 credit is charged, from single credits'],
      ['job', 'It ends: completed, some time after it was accepted'],
      ['job', 'Its file is removed'],
    ]);
  });

  it('charged as an overdraft are found with their account by the commands of the runbook, which asks for no credits', async () => {
    const lowered = await anAccount(operator.store, { quota: 1 });
    const job = await aRunningJob(operator.store, lowered);
    await operator.json('plan', 'set', lowered.plan, '--quota', '0');
    await settleJob(operator.store, holder, job, completed);
    const page = read('docs/runbooks/TrawlOverdraft.md');
    const asked = [...page.matchAll(/^trawl admin (.*)$/gm)].map(([, words]) => words!.split(' '));
    const names: Record<string, string> = { JOB: job.id, ACCOUNT: lowered.slug };
    const run = async (words: string[]) =>
      JSON.parse((await operator.run([...words.map((word) => names[word] ?? word), '--json'], env)).out);
    const [shown, entries] = await Promise.all(asked.map(run));
    expect(shown).to.include({ account: lowered.slug });
    expect(entries).to.be.an('array').with.nested.property('0.kind', 'overdraft');
    expect(page).not.to.match(/credits add|a balance is below zero|negative/);
  });

  it('D71: that found every balance empty are explained by an overdraft, and nothing is owed', async () => {
    const lowered = await anAccount(operator.store, { quota: 1 });
    const job = await aRunningJob(operator.store, lowered);
    const { plan } = await operator.json('account', 'show', lowered.slug);
    await operator.json('plan', 'set', String(plan), '--quota', '0');
    await settleJob(operator.store, holder, job, completed);
    const told = await operator.json<Shape[]>('job', 'explain', job.id);
    expect(told.filter(({ source }) => source === 'ledger').map(({ text }) => text)).to.deep.equal([
      'Every balance was empty: the credit is entered as an overdraft, and nothing is owed',
    ]);
    expect((await operator.json('account', 'show', lowered.slug)).usage).to.include({ remaining: 0, held: 0 });
  });

  it('are cancelled once, and a second cancel changes nothing', async () => {
    const id = await admitted(operator.store, caller);
    const cancelled = await operator.json('job', 'cancel', id);
    expect(cancelled).to.include({ id, status: 'Error', error: 'Cancelled', error_code: 'cancelled' });
    expect(await operator.json('job', 'cancel', id)).to.deep.equal(cancelled);
    expect((await operator.json('account', 'show', caller.slug)).usage).to.include({ remaining: 10, held: 0 });
  });

  for (const field of ['asked', 'verdict', 'metadata', 'delivered', 'attempts']) {
    it(`a running job whose ${field} cannot be read is explained by that field, and its cancel gives the credit back`, async () => {
      const { id } = await aRunningJob(operator.store, caller);
      await operator.store.connection.send(['HSET', keys.job(id), field, '{"cut of']);
      const explain = async () => (await operator.json<Shape[]>('job', 'explain', id)).map(({ text }) => text);
      expect(await explain()).to.include(`Its record is damaged: ${field} cannot be read`);
      const cancelled = await operator.json('job', 'cancel', id);
      const known = { id, endpoint: '/v1/video/download', status: 'Error', error_code: 'cancelled' };
      expect(cancelled).to.include(known);
      expect(await operator.json('job', 'show', id)).to.deep.equal(cancelled);
      expect(await explain()).to.satisfy((texts: string[]) =>
        texts.some((text) => text.startsWith('It ends: Error (cancelled)')),
      );
      expect((await operator.json('account', 'show', caller.slug)).usage).to.include({ remaining: 10, held: 0 });
    });
  }

  it('an ended job whose texts cannot be read is shown with the rest, and explained by them', async () => {
    const { id } = await aRunningJob(operator.store, caller);
    await cancelJob(operator.store, await theJob(operator.store, id));
    const key = keys.endedJob(id);
    const [words, attempts] = (await operator.store.connection.readBytes([key]))[0]!.toString('latin1').split('\n');
    await operator.store.connection.send(['SET', key, `${words}\n${attempts}\nno texts`]);
    expect(await operator.json('job', 'show', id)).to.include({ id, status: 'Error', error_code: 'cancelled' });
    const told = await operator.json<Shape[]>('job', 'explain', id);
    expect(told.map(({ text }) => text)).to.include('Its record is damaged: texts cannot be read');
  });

  it('a job that does not exist is refused as not_found', async () => {
    for (const verb of ['show', 'explain', 'cancel']) {
      expect(await operator.refused('job', verb, randomUUID())).to.include({ code: 'not_found' });
    }
  });
});

import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { creditPaths, expectRefused, film } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import { failed } from '../support/record.ts';
import { readWebhook } from '../support/stored-job.ts';

const [former, present] = [randomBytes(32), randomBytes(32)];
/** The settings of each step of docs/operate.md, in their order; the one before and the one after run side by side. */
const steps = [
  { secret: former, old: null },
  { secret: former, old: [former, present] },
  { secret: present, old: [former, present] },
  { secret: present, old: null },
];

describe('a new TRAWL_SECRET, step by step', () => {
  const apis: TestApi[] = [];
  let caller: ApiCaller;
  before(async () => {
    for (const step of steps) {
      const seal = makeSeal(step);
      apis.push(
        await startApi({}, (parts) => {
          const first = apis[0];
          return { ...parts, seal, ...(first && { store: first.store, objects: first.objects }) };
        }),
      );
    }
    caller = await apis[0]!.addCaller({ credits: 100 });
  });
  after(async () => {
    for (const api of apis.toReversed()) await api.stop();
  });

  for (const [earlier, later] of [
    [0, 1],
    [1, 2],
    [2, 3],
  ] as const) {
    for (const [one, other] of [
      [earlier, later],
      [later, earlier],
    ] as const) {
      it(`D12: a call admitted in step ${one} is answered again in step ${other}`, async () => {
        for (const path of creditPaths) {
          const headers = { 'idempotency-key': `${one} ${other} ${path}` };
          const options = { key: caller.key, params: { query: film }, headers };
          const first = await apis[one]!.call('GET', path, options);
          expect(first.status, first.text).to.be.oneOf([200, 202]);
          const again = await apis[other]!.call('GET', path, options);
          expect([again.status, again.json], again.text).to.deep.equal([first.status, first.json]);
          const different = { ...options, params: { query: `${film}?other` } };
          expect((await apis[other]!.call('GET', path, different)).status).to.equal(409);
        }
        const batch = { endpoint: 'audio', items: [{ query: film }] };
        const options = { key: caller.key, body: batch, headers: { 'idempotency-key': `batch ${one} ${other}` } };
        const first = await apis[one]!.call('POST', '/v1/batches', options);
        expect((await apis[other]!.call('POST', '/v1/batches', options)).json).to.deep.equal(first.json);
      });

      it(`a retry in step ${other} of a job from step ${one} has its webhook opened by the secret of step ${other} alone`, async () => {
        const hook = { webhook_url: 'https://example.com/hook', webhook_authorization: 'Bearer x' };
        const params = { query: film, ...hook };
        const { json } = await apis[one]!.call('GET', '/v1/video/download', { key: caller.key, params });
        await endJob(apis[0]!.store, json.job_id, failed);
        const again = await apis[other]!.call('POST', `/v1/jobs/${json.job_id}/retry`, { key: caller.key });
        const webhook = await readWebhook(apis[0]!.store, again.json.job_id);
        const alone = makeSeal({ secret: steps[other]!.secret });
        expect(alone.open('webhook', webhook!.authorization)).to.equal('Bearer x');
      });

      it(`links and sealed texts made in step ${one} hold in step ${other}`, () => {
        const [maker, reader] = [makeSeal(steps[one]!), makeSeal(steps[other]!)];
        expect(reader.verify('link', 'a', maker.sign('link', 'a'))).to.equal(true);
        expect(reader.open('webhook', maker.seal('webhook', 'Bearer x'))).to.equal('Bearer x');
      });
    }
  }

  it('D83: a retry of a job whose webhook_authorization no secret opens any more is 400, and holds nothing', async () => {
    const [first, last] = [apis[0]!, apis.at(-1)!];
    const { key, account } = await first.addCaller();
    const hook = { webhook_url: 'https://example.com/hook', webhook_authorization: 'Bearer x' };
    const { json } = await first.call('GET', '/v1/video/download', { key, params: { query: film, ...hook } });
    await endJob(first.store, json.job_id, failed);
    const refused = await last.call('POST', `/v1/jobs/${json.job_id}/retry`, { key });
    expectRefused(refused, 400, 'bad_request', /^Bad Request: the webhook_authorization of this job cannot be read/);
    expect((await readSnapshot(first.store, account)).balances.held).to.equal(0);
  });

  it('D12: a repeated retry gives its job although no secret opens the webhook_authorization of the job that it repeats any more', async () => {
    const [first, both, last] = [apis[0]!, apis.at(-2)!, apis.at(-1)!];
    const { key, account } = await first.addCaller();
    const hook = { webhook_url: 'https://example.com/hook', webhook_authorization: 'Bearer x' };
    const { json } = await first.call('GET', '/v1/video/download', { key, params: { query: film, ...hook } });
    await endJob(first.store, json.job_id, failed);
    const headers = { 'idempotency-key': 'again' };
    const retry = (at: TestApi) => at.call('POST', `/v1/jobs/${json.job_id}/retry`, { key, headers });
    const again = await retry(both);
    const repeated = await retry(last);
    expect([repeated.status, repeated.json]).to.deep.equal([again.status, again.json]);
    expect((await readSnapshot(first.store, account)).balances.held).to.equal(1);
  });
});

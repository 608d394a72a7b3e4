import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { noteStoring } from '../../src/store/jobs/note-storing.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { scripts } from '../../src/store/script.ts';
import { type ApiCaller, aFilm, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, unknownId } from '../support/calls.ts';
import { endJob, runJob, submitApart } from '../support/job-steps.ts';
import { completed, failed, holder } from '../support/record.ts';
import { readWebhook } from '../support/stored-job.ts';

describe('jobs', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());

  const submit = async (caller: ApiCaller, params = {}) =>
    String((await api.get('/v1/video/download', caller.key, { query: film, ...params })).json.job_id);
  const poll = async (caller: ApiCaller, id: string) => (await api.get(`/v1/jobs/${id}`, caller.key)).json;
  const money = async (caller: ApiCaller) => {
    const { balances } = await readSnapshot(api.store, caller.account);
    return [balances.credits_consumed, balances.held];
  };

  describe('the list', () => {
    const list = async (caller: ApiCaller, params = {}) => (await api.get('/v1/jobs', caller.key, params)).json;
    const idsOf = (page: { jobs: { id: string }[] }) => page.jobs.map(({ id }) => id);

    for (const path of ['/v1/jobs', '/api/v1/jobs']) {
      it(`D13: GET ${path} lists the account's jobs as they are polled, newest first, for free`, async () => {
        const [caller, stranger] = [await api.addCaller(), await api.addCaller()];
        const ids = await submitApart(3, () => submit(caller));
        await submit(stranger);
        await endJob(api.store, ids[0]!, failed);
        await runJob(api.store, ids[1]!);
        const { status, json } = await api.get(path, caller.key);
        expect([status, Object.keys(json)]).to.deep.equal([200, ['jobs', 'next_cursor']]);
        // The estimate changes with what was measured meanwhile.
        const shown = ({ queue, ...job }: Record<string, unknown>) => [job, Boolean(queue)];
        const polled = await Promise.all(ids.toReversed().map((id) => poll(caller, id)));
        expect(json.jobs.map(shown)).to.deep.equal(polled.map(shown));
        expect(json.next_cursor).to.equal(null);
        expect((await money(caller))[0]).to.equal(0);
      });
    }

    it('D84: pages give every job once while new ones come, and end with a null cursor', async () => {
      const caller = await api.addCaller();
      const ids = await Promise.all(Array.from({ length: 7 }, () => submit(caller)));
      const first = await list(caller, { limit: '3' });
      await submit(caller);
      const second = await list(caller, { limit: '3', cursor: first.next_cursor });
      const third = await list(caller, { limit: '3', cursor: second.next_cursor });
      expect([first, second, third].map(({ jobs }) => jobs.length)).to.deep.equal([3, 3, 1]);
      expect([first, second, third].flatMap(idsOf)).to.have.members(ids);
      expect(third.next_cursor).to.equal(null);
      const again = await list(caller, { limit: '3', cursor: first.next_cursor });
      // The estimate of a queued job changes with what was measured meanwhile.
      expect([idsOf(again), again.next_cursor]).to.deep.equal([idsOf(second), second.next_cursor]);
    });

    it('D84: has 20 jobs a page unless a limit is given, and up to 100', async () => {
      const caller = await api.addCaller();
      await Promise.all(Array.from({ length: 21 }, () => submit(caller)));
      const page = await list(caller);
      expect([page.jobs.length, (await list(caller, { cursor: page.next_cursor })).jobs.length]).to.deep.equal([20, 1]);
      expect(idsOf(await list(caller, { limit: '100' }))).to.have.length(21);
    });

    it('filters by status, over pages too', async () => {
      const caller = await api.addCaller();
      const ids = await submitApart(3, () => submit(caller));
      for (const id of ids) await endJob(api.store, id, failed);
      await endJob(api.store, await submit(caller));
      const running = await submit(caller);
      await runJob(api.store, running);
      expect(idsOf(await list(caller, { status: 'Running' }))).to.deep.equal([running]);
      expect((await list(caller, { status: 'NotFound' })).jobs).to.deep.equal([]);
      const first = await list(caller, { status: 'Error', limit: '2' });
      const rest = await list(caller, { status: 'Error', limit: '2', cursor: first.next_cursor });
      expect([...idsOf(first), ...idsOf(rest)]).to.deep.equal(ids.toReversed());
      expect(rest.next_cursor).to.equal(null);
    });

    const wrong: [params: Record<string, string>, rest: RegExp][] = [
      [{ status: 'running' }, /^Bad Request: status must be one of QueuedJob, Running, CompletedJob/],
      [{ limit: '0' }, /^Bad Request: limit must be a whole number from 1 to 100$/],
      [{ limit: '101' }, /^Bad Request: limit/],
      [{ limit: '1.5' }, /^Bad Request: limit/],
      [{ cursor: '' }, /^Bad Request: cursor must be the next_cursor of an earlier answer$/],
      [{ cursor: 'nonsense' }, /^Bad Request: cursor must be the next_cursor of an earlier answer$/],
      [{ cursor: Buffer.from('1 x').toString('base64url') }, /^Bad Request: cursor/],
    ];
    for (const [params, error] of wrong) {
      it(`D84: refuses ${JSON.stringify(params)} with 400 and names the parameter`, async () => {
        const caller = await api.addCaller();
        expectRefused(await api.get('/v1/jobs', caller.key, params), 400, 'bad_request', error);
      });
    }

    it('D9: with fields has the named fields of each job alone', async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      const page = await list(caller, { fields: 'jobs.id,jobs.args.query' });
      expect(page).to.deep.equal({ jobs: [{ id, args: { query: film } }] });
    });
  });

  describe('cancel', () => {
    for (const path of ['/v1/jobs', '/api/v1/jobs', '/jobs']) {
      it(`D16 D95: DELETE ${path}/{id} ends a waiting job as cancelled, without a charge, logged as 400`, async () => {
        const caller = await api.addCaller();
        const id = await submit(caller);
        const { status, json } = await api.call('DELETE', `${path}/${id}`, { key: caller.key });
        expect(status).to.equal(200);
        expect(json).to.deep.include({ id, status: 'Error', success: false, error: 'Cancelled', result: null });
        expect([json.error_code, json.retryable, json.duration_ms]).to.deep.equal(['cancelled', false, null]);
        expect(json).to.deep.equal(await poll(caller, id));
        expect(await money(caller)).to.deep.equal([0, 0]);
        const lines = await readLines(api.store, caller.account, 9);
        const ended = lines.filter((line) => line.endpoint === 'GET /v1/video/download' && line.status !== 202);
        expect(ended.map((line) => [line.status, line.credits])).to.deep.equal([[400, 0]]);
      });
    }

    it('D43: ends a running job of an empty balance, and changes nothing when it is repeated', async () => {
      const caller = await api.addCaller({ credits: 1 });
      const id = await submit(caller);
      await runJob(api.store, id);
      const first = await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
      expect([first.json.status, first.json.error_code, first.json.progress]).to.deep.equal(['Error', 'cancelled', 10]);
      const second = await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
      expect([second.status, second.json]).to.deep.equal([200, first.json]);
      expect(await money(caller)).to.deep.equal([0, 0]);
    });

    it('counts a cancelled job once in trawl_jobs_total, and in trawl_job_seconds when it ran', async () => {
      const counted = async () => {
        const { values } = await api.metrics.jobs_total.get();
        const timed = (await api.metrics.job_seconds.get()).values;
        const queued = timed.find(({ metricName, labels }) => /_count$/.test(metricName!) && labels.stage === 'queue');
        return [values.find(({ labels }) => labels.code === 'cancelled')?.value ?? 0, queued?.value ?? 0];
      };
      const [jobs, times] = await counted();
      const caller = await api.addCaller();
      const [ran, waited] = [await submit(caller), await submit(caller)];
      await runJob(api.store, ran);
      for (const id of [ran, ran, waited, waited]) await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
      expect(await counted()).to.deep.equal([jobs! + 2, times! + 1]);
    });

    it('of a completed job removes its file, answers its link with 410 and keeps the charge', async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      await endJob(api.store, id);
      const link = (await poll(caller, id)).result.response;
      for (let times = 0; times < 2; times++) {
        const { status, json } = await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
        expect([status, json.status, json.success]).to.deep.equal([200, 'CompletedJob', true]);
        expect(json.result).to.deep.include({ response: null, bytes: 5 });
      }
      expect((await api.get(link.replace(api.url, ''))).status).to.equal(410);
      expect(await money(caller)).to.deep.equal([1, 0]);
    });

    it('of a job that completes before it is cancelled leaves the file that is charged', async () => {
      const cancelling = scripts.find(({ name }) => name === 'cancel-job')!.sha;
      let complete = async () => {};
      const raced = await startApi({}, (parts) => {
        const { connection } = parts.store;
        const run: typeof connection.eval = async (lua, sha, ...rest) => {
          if (sha === cancelling) await complete();
          return connection.eval(lua, sha, ...rest);
        };
        return { ...parts, store: { ...parts.store, connection: { ...connection, eval: run } } };
      });
      try {
        const { key } = await raced.addCaller();
        const id = String((await raced.get('/v1/video/download', key, { query: film })).json.job_id);
        await noteStoring(raced.store, holder, await runJob(raced.store, id), completed);
        complete = async () => void (await endJob(raced.store, id));
        const { json } = await raced.call('DELETE', `/v1/jobs/${id}`, { key });
        expect([json.status, typeof json.result.response]).to.deep.equal(['CompletedJob', 'string']);
      } finally {
        await raced.stop();
      }
    });

    it('of a failed job changes nothing', async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      await endJob(api.store, id, failed);
      const before = await poll(caller, id);
      expect((await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key })).json).to.deep.equal(before);
    });

    it("D14: of an unknown or another account's job is 404, of no UUID 400", async () => {
      const [caller, stranger] = [await api.addCaller(), await api.addCaller()];
      const id = await submit(caller);
      const cancel = (wrong: string) => api.call('DELETE', `/v1/jobs/${wrong}`, { key: stranger.key });
      for (const wrong of [id, unknownId]) expectRefused(await cancel(wrong), 404, 'not_found', 'Not Found');
      expectRefused(await cancel('x'), 400, 'bad_request', 'Bad Request: id must be a UUID');
      expect((await poll(caller, id)).status).to.equal('QueuedJob');
    });
  });

  describe('retry', () => {
    const retry = (caller: ApiCaller, id: string, options = {}) =>
      api.call('POST', `/v1/jobs/${id}/retry`, { key: caller.key, ...options });

    for (const path of ['/v1/jobs', '/api/v1/jobs']) {
      it(`auth-9 events-2 D83: POST ${path}/{id}/retry starts a new job with the same parameters and webhook`, async () => {
        const caller = await api.addCaller();
        const params = {
          video_quality: '480p',
          webhook_url: 'https://example.com/hook',
          webhook_authorization: 'Bearer x',
        };
        const id = await submit(caller, params);
        await endJob(api.store, id, failed);
        const answer = await api.call('POST', `${path}/${id}/retry`, { key: caller.key });
        expect([answer.status, Object.keys(answer.json)]).to.deep.equal([202, ['job_id']]);
        expect(answer.headers.get('location')).to.equal(`/v1/jobs/${answer.json.job_id}`);
        const [old, fresh] = [await poll(caller, id), await poll(caller, answer.json.job_id)];
        expect(fresh.args).to.deep.equal(old.args);
        expect([fresh.status, fresh.endpoint, fresh.id === id]).to.deep.equal(['QueuedJob', old.endpoint, false]);
        const webhook = await readWebhook(api.store, fresh.id);
        expect(webhook?.authorization).to.be.a('string').and.not.contain('Bearer');
        // Sealed anew: that it opens as before is a test of the secret's rotation.
        const { authorization } = webhook ?? {};
        expect(webhook).to.deep.equal({ ...(await readWebhook(api.store, id)), authorization });
        expect((await readSnapshot(api.store, caller.account)).balances.held).to.equal(1);
      });
    }

    it("D83: of a job that has not ended is 409; of an unknown or another account's job 404, of no UUID 400", async () => {
      const [caller, stranger] = [await api.addCaller(), await api.addCaller()];
      const id = await submit(caller);
      expectRefused(await retry(caller, id), 409, 'not_ended', 'The job has not ended yet');
      await endJob(api.store, id);
      expectRefused(await retry(stranger, id), 404, 'not_found', 'Not Found');
      expectRefused(await retry(caller, unknownId), 404, 'not_found', 'Not Found');
      expectRefused(await retry(caller, 'x'), 400, 'bad_request', 'Bad Request: id must be a UUID');
      expect((await readSnapshot(api.store, caller.account)).balances.held).to.equal(0);
    });

    it('D12: with an Idempotency-Key starts one new job, and is 409 for another job', async () => {
      const caller = await api.addCaller();
      const [one, other] = [await submit(caller), await submit(caller)];
      await Promise.all([one, other].map((id) => endJob(api.store, id)));
      const options = { headers: { 'idempotency-key': 'again' } };
      const first = await retry(caller, one, options);
      expect((await retry(caller, one, options)).json).to.deep.equal(first.json);
      expectRefused(await retry(caller, other, options), 409, 'idempotency_conflict', /other parameters/);
      expect((await api.get('/v1/jobs', caller.key)).json.jobs).to.have.length(3);
    });

    it('D5 D77: with a wrong flag or body is 400, and starts nothing', async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      await endJob(api.store, id);
      for (const wrong of [{ params: { soft_fail: 'maybe' } }, { params: { is_async: '2' } }, { body: '[]' }]) {
        expectRefused(
          await retry(caller, id, wrong),
          400,
          'bad_request',
          /^Bad Request: (soft_fail|is_async|the body)/,
        );
      }
      expect((await api.get('/v1/jobs', caller.key)).json.jobs).to.have.length(1);
    });

    it('of asynchronous metadata starts a new metadata job', async () => {
      const caller = await api.addCaller();
      const { json } = await api.get('/v1/media/metadata', caller.key, { query: film, is_async: 'true' });
      await endJob(api.store, json.job_id, { ...completed, metadata: aFilm, delivered: null });
      const old = await poll(caller, json.job_id);
      expect(old.result).to.deep.equal({ metadata: aFilm, response: null });
      const fresh = await poll(caller, (await retry(caller, json.job_id)).json.job_id);
      expect([fresh.endpoint, fresh.args]).to.deep.equal([old.endpoint, old.args]);
    });
  });
});

import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { readWebhook } from '../../src/store/jobs/read-job.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { aFilm, type Desk, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, unknownId } from '../support/calls.ts';
import { completed, failed } from '../support/record.ts';
import { endJob, runJob } from '../support/work.ts';

describe('jobs', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());

  const submit = async (desk: Desk, params = {}) =>
    String((await api.get('/v1/video/download', desk.key, { query: film, ...params })).json.job_id);
  const poll = async (desk: Desk, id: string) => (await api.get(`/v1/jobs/${id}`, desk.key)).json;
  const money = async (desk: Desk) => {
    const { balances } = await readSnapshot(api.store, desk.account);
    return [balances.credits_consumed, balances.held];
  };

  describe('the list', () => {
    const list = async (desk: Desk, params = {}) => (await api.get('/v1/jobs', desk.key, params)).json;
    const idsOf = (page: { jobs: { id: string }[] }) => page.jobs.map(({ id }) => id);

    for (const path of ['/v1/jobs', '/api/v1/jobs']) {
      it(`D13: GET ${path} lists the account's jobs as they are polled, newest first, for free`, async () => {
        const [desk, stranger] = [await api.desk(), await api.desk()];
        const ids = [await submit(desk), await submit(desk), await submit(desk)];
        await submit(stranger);
        await endJob(api.store, ids[0]!, failed);
        await runJob(api.store, ids[1]!);
        const { status, json } = await api.get(path, desk.key);
        expect([status, Object.keys(json)]).to.deep.equal([200, ['jobs', 'next_cursor']]);
        // The estimate changes with what was measured meanwhile.
        const shown = ({ queue, ...job }: Record<string, unknown>) => [job, Boolean(queue)];
        const polled = await Promise.all(ids.toReversed().map((id) => poll(desk, id)));
        expect(json.jobs.map(shown)).to.deep.equal(polled.map(shown));
        expect(json.next_cursor).to.equal(null);
        expect((await money(desk))[0]).to.equal(0);
      });
    }

    it('D84: pages give every job once while new ones come, and end with a null cursor', async () => {
      const desk = await api.desk();
      const ids = await Promise.all(Array.from({ length: 7 }, () => submit(desk)));
      const first = await list(desk, { limit: '3' });
      await submit(desk);
      const second = await list(desk, { limit: '3', cursor: first.next_cursor });
      const third = await list(desk, { limit: '3', cursor: second.next_cursor });
      expect([first, second, third].map(({ jobs }) => jobs.length)).to.deep.equal([3, 3, 1]);
      expect([first, second, third].flatMap(idsOf)).to.have.members(ids);
      expect(third.next_cursor).to.equal(null);
      const again = await list(desk, { limit: '3', cursor: first.next_cursor });
      expect(again).to.deep.equal(second);
    });

    it('D84: has 20 jobs a page unless told, and at most 100', async () => {
      const desk = await api.desk();
      await Promise.all(Array.from({ length: 21 }, () => submit(desk)));
      const page = await list(desk);
      expect([page.jobs.length, (await list(desk, { cursor: page.next_cursor })).jobs.length]).to.deep.equal([20, 1]);
      expect(idsOf(await list(desk, { limit: '100' }))).to.have.length(21);
    });

    it('filters by status, over pages too', async () => {
      const desk = await api.desk();
      const ids = [await submit(desk), await submit(desk), await submit(desk)];
      for (const id of ids) await endJob(api.store, id, failed);
      await endJob(api.store, await submit(desk));
      const running = await submit(desk);
      await runJob(api.store, running);
      expect(idsOf(await list(desk, { status: 'Running' }))).to.deep.equal([running]);
      expect((await list(desk, { status: 'NotFound' })).jobs).to.deep.equal([]);
      const first = await list(desk, { status: 'Error', limit: '2' });
      const rest = await list(desk, { status: 'Error', limit: '2', cursor: first.next_cursor });
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
      it(`D84: ${JSON.stringify(params)} is 400 and named`, async () => {
        const desk = await api.desk();
        expectRefused(await api.get('/v1/jobs', desk.key, params), 400, 'bad_request', error);
      });
    }

    it('D9: fields reaches into each job', async () => {
      const desk = await api.desk();
      const id = await submit(desk);
      const page = await list(desk, { fields: 'jobs.id,jobs.args.query' });
      expect(page).to.deep.equal({ jobs: [{ id, args: { query: film } }] });
    });
  });

  describe('cancel', () => {
    for (const path of ['/v1/jobs', '/api/v1/jobs', '/jobs']) {
      it(`D16 D95: DELETE ${path}/{id} ends a job that waits as cancelled, unbilled, logged 400`, async () => {
        const desk = await api.desk();
        const id = await submit(desk);
        const { status, json } = await api.call('DELETE', `${path}/${id}`, { key: desk.key });
        expect(status).to.equal(200);
        expect(json).to.deep.include({ id, status: 'Error', success: false, error: 'Cancelled', result: null });
        expect([json.error_code, json.retryable, json.duration_ms]).to.deep.equal(['cancelled', false, null]);
        expect(json).to.deep.equal(await poll(desk, id));
        expect(await money(desk)).to.deep.equal([0, 0]);
        const lines = await readLines(api.store, desk.account, 9);
        const ended = lines.filter((line) => line.endpoint === 'GET /v1/video/download' && line.status !== 202);
        expect(ended.map((line) => [line.status, line.credits])).to.deep.equal([[400, 0]]);
      });
    }

    it('D43: works with an empty balance, on a job that runs; repeating it changes nothing', async () => {
      const desk = await api.desk({ credits: 1 });
      const id = await submit(desk);
      await runJob(api.store, id);
      const first = await api.call('DELETE', `/v1/jobs/${id}`, { key: desk.key });
      expect([first.json.status, first.json.error_code, first.json.progress]).to.deep.equal(['Error', 'cancelled', 10]);
      const second = await api.call('DELETE', `/v1/jobs/${id}`, { key: desk.key });
      expect([second.status, second.json]).to.deep.equal([200, first.json]);
      expect(await money(desk)).to.deep.equal([0, 0]);
    });

    it('of an ended job removes its file: the response is null, its link 410, the charge stays', async () => {
      const desk = await api.desk();
      const id = await submit(desk);
      await endJob(api.store, id);
      const link = (await poll(desk, id)).result.response;
      for (let times = 0; times < 2; times++) {
        const { status, json } = await api.call('DELETE', `/v1/jobs/${id}`, { key: desk.key });
        expect([status, json.status, json.success]).to.deep.equal([200, 'CompletedJob', true]);
        expect(json.result).to.deep.include({ response: null, bytes: 5 });
      }
      expect((await api.get(link.replace(api.url, ''))).status).to.equal(410);
      expect(await money(desk)).to.deep.equal([1, 0]);
    });

    it('of a failed job changes nothing', async () => {
      const desk = await api.desk();
      const id = await submit(desk);
      await endJob(api.store, id, failed);
      const before = await poll(desk, id);
      expect((await api.call('DELETE', `/v1/jobs/${id}`, { key: desk.key })).json).to.deep.equal(before);
    });

    it("D14: of an unknown or another account's job is 404, of no UUID 400", async () => {
      const [desk, stranger] = [await api.desk(), await api.desk()];
      const id = await submit(desk);
      const cancel = (wrong: string) => api.call('DELETE', `/v1/jobs/${wrong}`, { key: stranger.key });
      for (const wrong of [id, unknownId]) expectRefused(await cancel(wrong), 404, 'not_found', 'Not Found');
      expectRefused(await cancel('x'), 400, 'bad_request', 'Bad Request: id must be a UUID');
      expect((await poll(desk, id)).status).to.equal('QueuedJob');
    });
  });

  describe('retry', () => {
    const retry = (desk: Desk, id: string, options = {}) =>
      api.call('POST', `/v1/jobs/${id}/retry`, { key: desk.key, ...options });

    for (const path of ['/v1/jobs', '/api/v1/jobs']) {
      it(`auth-9 events-2 D83: POST ${path}/{id}/retry starts a new job with the same parameters and webhook`, async () => {
        const desk = await api.desk();
        const params = {
          video_quality: '480p',
          webhook_url: 'https://example.com/hook',
          webhook_authorization: 'Bearer x',
        };
        const id = await submit(desk, params);
        await endJob(api.store, id, failed);
        const answer = await api.call('POST', `${path}/${id}/retry`, { key: desk.key });
        expect([answer.status, Object.keys(answer.json)]).to.deep.equal([202, ['job_id']]);
        expect(answer.headers.get('location')).to.equal(`/v1/jobs/${answer.json.job_id}`);
        const [old, fresh] = [await poll(desk, id), await poll(desk, answer.json.job_id)];
        expect(fresh.args).to.deep.equal(old.args);
        expect([fresh.status, fresh.endpoint, fresh.id === id]).to.deep.equal(['QueuedJob', old.endpoint, false]);
        const webhook = await readWebhook(api.store, fresh.id);
        expect(webhook?.authorization).to.be.a('string').and.not.contain('Bearer');
        expect(webhook).to.deep.equal(await readWebhook(api.store, id));
        expect((await readSnapshot(api.store, desk.account)).balances.held).to.equal(1);
      });
    }

    it("D83: of a job that has not ended is 409; of an unknown or another account's job 404, of no UUID 400", async () => {
      const [desk, stranger] = [await api.desk(), await api.desk()];
      const id = await submit(desk);
      expectRefused(await retry(desk, id), 409, 'not_ended', 'The job has not ended yet');
      await endJob(api.store, id);
      expectRefused(await retry(stranger, id), 404, 'not_found', 'Not Found');
      expectRefused(await retry(desk, unknownId), 404, 'not_found', 'Not Found');
      expectRefused(await retry(desk, 'x'), 400, 'bad_request', 'Bad Request: id must be a UUID');
      expect((await readSnapshot(api.store, desk.account)).balances.held).to.equal(0);
    });

    it('D12: takes an Idempotency-Key: one new job for the same key, 409 for another job', async () => {
      const desk = await api.desk();
      const [one, other] = [await submit(desk), await submit(desk)];
      await Promise.all([one, other].map((id) => endJob(api.store, id)));
      const options = { headers: { 'idempotency-key': 'again' } };
      const first = await retry(desk, one, options);
      expect((await retry(desk, one, options)).json).to.deep.equal(first.json);
      expectRefused(await retry(desk, other, options), 409, 'idempotency_conflict', /other parameters/);
      expect((await api.get('/v1/jobs', desk.key)).json.jobs).to.have.length(3);
    });

    it('D5 D77: judges its flags and its body, and starts nothing when they are wrong', async () => {
      const desk = await api.desk();
      const id = await submit(desk);
      await endJob(api.store, id);
      for (const wrong of [{ params: { soft_fail: 'maybe' } }, { params: { is_async: '2' } }, { body: '[]' }]) {
        expectRefused(await retry(desk, id, wrong), 400, 'bad_request', /^Bad Request: (soft_fail|is_async|the body)/);
      }
      expect((await api.get('/v1/jobs', desk.key)).json.jobs).to.have.length(1);
    });

    it('of asynchronous metadata inspects again', async () => {
      const desk = await api.desk();
      const { json } = await api.get('/v1/media/metadata', desk.key, { query: film, is_async: 'true' });
      await endJob(api.store, json.job_id, { ...completed, metadata: aFilm, delivered: null });
      const old = await poll(desk, json.job_id);
      expect(old.result).to.deep.equal({ metadata: aFilm, response: null });
      const fresh = await poll(desk, (await retry(desk, json.job_id)).json.job_id);
      expect([fresh.endpoint, fresh.args]).to.deep.equal([old.endpoint, old.args]);
    });
  });
});

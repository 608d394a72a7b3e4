import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { type ClientCommand, clientNames } from '../support/client-driver.ts';
import { makeClientScenes } from '../support/client-scenes.ts';
import { startFaultyLink } from '../support/faulty-link.ts';
import { runAtStandIn } from '../support/stand-in-service.ts';
import { until } from '../support/until.ts';

const submits = /^\/v1\/video\/download/;
/** Time that a client has to cancel the job of a download that is given up. */
const clientPatienceMs = 10_000;

describe('the clients of callers, at the edges', () => {
  const { service, jobsOf, expectOne, inEach, address } = makeClientScenes();

  inEach('fetches a file that the service keeps elsewhere, where no key is sent', async ({ link, customer, run }) => {
    const store = await startFaultyLink();
    store.lead(address());
    link.redirectFiles(store.url);
    await expectOne(await run({}, { patienceSeconds: 5 }), customer).finally(store.stop);
    expect(store.calls).to.have.length(1);
    expect(store.calls[0]!.headers).not.to.have.any.keys('x-api-key', 'authorization');
  });

  inEach(
    'cancels the job of a download that is interrupted before its call is answered',
    async ({ films, link, customer, run, interrupt }) => {
      const release = films.hold();
      const interruptOne = async () => {
        const { length } = await jobsOf(customer);
        link.holdAnswers(submits, 1);
        const outcome = run({ verb: 'abort', url: `${films.url}/held/clip.mp4` });
        await until(async () => (await jobsOf(customer)).length > length, 60, 'the job was started');
        const interrupted = performance.now();
        interrupt();
        expect(await outcome).to.deep.equal({ value: {} });
        const isGivenUp = performance.now() - interrupted >= clientPatienceMs;
        return { code: (await jobsOf(customer))[0]?.error_code, isGivenUp };
      };
      try {
        let ended = await interruptOne();
        // A machine that is busy enough makes a client give up: the next one may be faster.
        for (let n = 1; ended.isGivenUp && ended.code !== 'cancelled' && n < 4; n++) ended = await interruptOne();
        expect(ended.code).to.equal('cancelled');
      } finally {
        release();
      }
      const haveEnded = async () => (await jobsOf(customer)).every(({ status }) => isEnded(status));
      await until(haveEnded, 60, 'the jobs have ended');
      await service.checkLedger(customer.account, await jobsOf(customer));
    },
  );

  inEach(
    'keeps the charged file of a download that is given up when its job has ended already',
    async ({ link, customer, run, interrupt }) => {
      // Each try: one that is answered before the job has ended would cancel it, and a busy machine needs several for that.
      link.holdAnswers(submits, Number.POSITIVE_INFINITY);
      const outcome = run({ verb: 'abort' }, { patienceSeconds: 600 });
      const hasEnded = async () => (await jobsOf(customer))[0]?.status === 'CompletedJob';
      await until(hasEnded, 30, 'the job has completed');
      link.holdAnswers(submits, 0);
      interrupt();
      expect(await outcome).to.deep.equal({ value: {} });
      const jobs = await jobsOf(customer);
      expect(jobs.map(({ removed_at }) => removed_at)).to.deep.equal([null]);
      await service.checkLedger(customer.account, jobs);
    },
  );

  inEach('ends a download whose progress callback fails, with that failure', async ({ run }) => {
    expect(await run({ verb: 'fail' }, { patienceSeconds: 2 })).to.deep.equal({ value: { thrown: 'of the caller' } });
  });

  inEach(
    'ends a download whose progress callback fails with an error of the client, and repeats nothing',
    async (scene) => {
      const { error } = await scene.run({ verb: 'refuse' }, { patienceSeconds: 2 });
      expect(error).to.deep.include({ code: 'unavailable', sentence: 'of the caller' });
      expect(scene.link.calls.filter(({ path }) => path.includes('/events'))).to.have.length(1);
    },
  );

  inEach('refuses a key that no header can hold, and does not repeat it', async ({ link, customer, run }) => {
    for (const key of ['', `${customer.key}\n`, `${customer.key} `, 'ключ']) {
      const { error } = await run({}, { key });
      expect(error).to.deep.include({ code: 'invalid_api_key', retryable: false, status: null });
      expect(error?.sentence).to.equal('The API key must be given, and have visible ASCII characters alone');
    }
    expect(link.calls).to.deep.equal([]);
  });

  inEach('refuses an address that is none of a service, and does not repeat its password', async ({ link, run }) => {
    const host = link.url.slice('http://'.length);
    const odd = [
      '',
      host,
      `htp://${host}`,
      `http://bob:secret@${host}`,
      'http://[::1',
      'http://',
      'http://127.0.0.1:99999',
    ];
    const padded = [' ', '\n', '/ ', '?', '?a=1', '#a', ' x'].map((rest) => link.url + rest);
    for (const url of [...odd, ...padded, ` ${link.url}`]) {
      const { error } = await run({}, { url });
      expect(error, url).to.deep.include({ code: 'bad_request', retryable: false, status: null });
      expect(error?.sentence).to.equal(
        'The address of the service must be an http or https URL without user, password, query, fragment and blanks',
      );
    }
    expect(link.calls).to.deep.equal([]);
  });

  inEach('does not repeat a call whose Idempotency-Key was used for another', async ({ film, link, run }) => {
    await run({ verb: 'start', idempotencyKey: 'order 17' });
    const { error } = await run({ verb: 'start', idempotencyKey: 'order 17', url: `${film}?b` });
    expect(error).to.deep.include({ code: 'idempotency_conflict', retryable: false, status: 409 });
    expect(link.calls.filter(({ path }) => submits.test(path))).to.have.length(2);
    for (const idempotencyKey of ['ключ', '', ' ', ' order 17', 'order 17 ']) {
      const odd = await run({ verb: 'start', idempotencyKey });
      expect(odd.error, idempotencyKey).to.deep.include({ code: 'bad_request', retryable: false, status: null });
    }
  });

  inEach('names no signed link in the error of a file that does not come', async ({ link, run }) => {
    link.refuse(/^\/files\//, 99);
    const { error } = await run({}, { patienceSeconds: 0.1 });
    expect(error).to.deep.include({ code: 'unreachable' });
    expect(error?.sentence)
      .to.match(/^No way to http:\/\/127\.0\.0\.1:\d+: /)
      .and.not.contain('/files/');
  });

  inEach('tells of a metadata job that it has no file', async ({ film, run, link, customer }) => {
    const post = { method: 'POST', headers: { 'x-api-key': customer.key, 'content-type': 'application/json' } };
    const body = JSON.stringify({ endpoint: 'metadata', items: [{ query: film }] });
    await fetch(`${link.url}/v1/batches`, { ...post, body });
    const [job] = await jobsOf(customer);
    const { error } = await run({ verb: 'wait', jobIds: [job!.id] });
    expect([error?.code, error?.sentence]).to.deep.equal([
      'not_found',
      'A metadata job makes no file; what it read stands in `result.metadata` of the job',
    ]);
  });

  inEach('does not repeat a batch that never fits, whatever limit it is above', async ({ film, link, run }) => {
    const { key } = await service.aCustomer({ max_open: 1 });
    const batchOf = (items: readonly { readonly query: string }[]) =>
      run({ verb: 'batch', batch: { endpoint: 'video', items: [...items] } }, { key, patienceSeconds: 20 });
    const jobs = await batchOf([{ query: film }, { query: film }]);
    expect(jobs.error).to.deep.include({ code: 'rate_limited', status: 429, retryable: false });
    const bytes = await batchOf(Array.from({ length: 1000 }, () => ({ query: `${film}?${'x'.repeat(5000)}` })));
    expect(bytes.error).to.deep.include({ code: 'payload_too_large', status: 413, retryable: false });
    expect(link.calls.filter(({ path }) => path === '/v1/batches')).to.have.length(2);
  });

  inEach('throws a refusal that soft_fail answers with status 200', async ({ run }) => {
    const { error } = await run({ verb: 'start', url: 'nope', parameters: { soft_fail: true } });
    expect(error).to.deep.include({ code: 'bad_request', blame: 'caller', retryable: false, status: 400 });
  });
});

describe('a client of callers', () => {
  for (const name of clientNames) {
    const runAt = runAtStandIn.bind(null, name);

    it(`waits for more than 100 jobs at once, in ${name}`, async () => {
      const waiting: [string, ServerResponse][] = [];
      const jobIds = Array.from({ length: 101 }, (_, n) => String(n));
      const tell = ([id, response]: (typeof waiting)[number]) => {
        const result = { response: 'http://files.example/', bytes: 1, sha256: '', content_type: 'video/mp4' };
        const job = { id, status: 'CompletedJob', endpoint: '/v1/video/download', result };
        response.end(`id: 1\ndata: ${JSON.stringify(job)}\n\n`);
      };
      const hold = (path: string, response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
        waiting.push([path.split('/')[3]!, response]);
        if (waiting.length === jobIds.length) waiting.forEach(tell);
      };
      expect(await runAt(hold, { verb: 'wait', jobIds })).to.deep.equal({ value: jobIds });
    });

    it(`waits for a job although the account has as many waiting calls as it may have, in ${name}`, async () => {
      let polls = 0;
      let refusedAt = 0;
      let pausedMs = 0;
      const outcome = await runAt(
        (path, response) => {
          const isHeld = path.includes('wait=25');
          if (path.includes('/events') || (isHeld && refusedAt === 0)) {
            if (isHeld) refusedAt = performance.now();
            const headers = { 'x-error-code': 'rate_limited', 'retry-after': '1' };
            return void response
              .writeHead(429, headers)
              .end('{"error":"You have exceeded the waiting-calls rate limit"}');
          }
          if (polls === 0) pausedMs = performance.now() - refusedAt;
          polls += 1;
          const result = { response: 'http://files.example/', bytes: 1, sha256: '', content_type: 'video/mp4' };
          const status = isHeld ? 'CompletedJob' : 'Running';
          response.end(JSON.stringify({ id: '1', status, endpoint: '/v1/video/download', result }));
        },
        { verb: 'wait', jobIds: ['1'] },
      );
      expect(outcome).to.deep.equal({ value: ['1'] });
      // Polls that do not wait begin when `Retry-After` is over, and some later one waits again.
      expect(polls).to.be.within(2, 4);
      expect(pausedMs).to.be.at.least(990);
    });

    it(`spends at most 10 s on a download that is given up, in ${name}`, async () => {
      const answered: (string | undefined)[] = [];
      const outcome = await runAt(
        (path, response) => {
          const { method, headers } = response.req;
          const job = JSON.stringify({ id: '1', job_id: '1', status: 'Running', endpoint: '/v1/video/download' });
          if (headers.accept === 'text/event-stream')
            return void response.setHeader('content-type', headers.accept).end(`id: 1\ndata: ${job}\n\n`);
          if (path.endsWith('/download')) return void response.end(job);
          // Each of the calls is refused once: all of them together would take 16 s.
          const isRefused = !answered.includes(method);
          const answer = () => response.writeHead(isRefused ? 503 : 200).end(job, () => answered.push(method));
          // After a halt of this process, the end of a connection is read before the immediate.
          const timer = setTimeout(() => setImmediate(() => response.destroyed || answer()), 4_000);
          response.once('close', () => clearTimeout(timer));
        },
        { verb: 'abort' },
      );
      expect(outcome).to.deep.equal({ value: {} });
      expect(answered).to.include('GET').and.not.include('DELETE');
    });

    it(`gives up a file of which every connection brings the same beginning, in ${name}`, async () => {
      const half = 'a'.repeat(4096);
      let fetches = 0;
      const outcome = await runAt(
        (path, response) => {
          const file = `http://${response.req.headers.host}/file`;
          const result = { response: file, bytes: 2 * half.length, sha256: 'f', content_type: 'video/mp4' };
          const job = { id: '1', job_id: '1', status: 'CompletedJob', endpoint: '/v1/video/download', result };
          if (path !== '/file') return void response.end(JSON.stringify(job));
          fetches += 1;
          if (fetches > 50) return void response.writeHead(404).end();
          response.writeHead(200, { 'content-length': 2 * half.length }).write(half, () => response.destroy());
        },
        { verb: 'download', parameters: { wait: 'poll' } },
        0.5,
      );
      expect(outcome.error).to.deep.include({ code: 'unreachable' });
    });

    it(`tells of an address that answers with JSON of its own, in ${name}`, async () => {
      const batch = { endpoint: 'video' as const, items: [] };
      const commands: Partial<ClientCommand>[] = [
        { verb: 'start' },
        { verb: 'wait', jobIds: ['1'] },
        { verb: 'metadata' },
        { verb: 'jobs' },
        { verb: 'batch', batch },
      ];
      for (const command of commands) {
        const { error } = await runAt((_path, response) => void response.end('{"ok":true}'), command);
        expect(error, command.verb).to.deep.include({ code: 'not_trawl', blame: 'caller', status: 200 });
      }
    });

    it(`repeats a call that meets its first one, which still runs, in ${name}`, async () => {
      let calls = 0;
      const outcome = await runAt((_path, response) => {
        calls += 1;
        if (calls > 1) return void response.end('{"job_id":"1"}');
        const headers = { 'x-error-code': 'idempotency_conflict', 'retry-after': '1' };
        response.writeHead(409, headers).end('{"error":"It still runs"}');
      }, {});
      expect([outcome, calls]).to.deep.equal([{ value: { job_id: '1' } }, 2]);
    });
  }
});

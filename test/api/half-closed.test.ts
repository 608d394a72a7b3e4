import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { film } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import { sendRaw } from '../support/raw-http.ts';
import { until } from '../support/until.ts';

describe('a caller that closes only its side of the connection behind its request', () => {
  let api: TestApi;
  let caller: ApiCaller;
  /** Inspections that were begun. */
  let begun: number;
  let release: PromiseWithResolvers<void>;
  beforeEach(async () => {
    api = await startApi();
    caller = await api.addCaller({ credits: 10 });
    begun = 0;
    release = Promise.withResolvers();
    api.inspect(async (_, __, gone) => {
      begun++;
      await Promise.race([release.promise, gone]);
      return { metadata: { id: 'a' } };
    });
  });
  afterEach(async () => {
    release.resolve();
    await api.stop();
  });

  const get = (path: string, version = '1.1') =>
    `GET ${path} HTTP/${version}\r\nHost: x\r\nx-api-key: ${caller.key}\r\n\r\n`;
  const download = (version?: string) => get(`/v1/video/download?query=${film}`, version);
  const metadata = (version?: string) =>
    get('/v1/media/metadata?fields=metadata.id&query=https://example.com/a', version);
  const half = (bytes: string) => sendRaw(api.url, bytes, { end: true });
  const usage = async () => (await api.get('/v1/usage', caller.key)).json;
  const submit = async () => String((await api.get('/v1/video/download', caller.key, { query: film })).json.job_id);
  const isWatched = async (id: string) => {
    const reply = await api.redis.connection.send(['PUBSUB', 'NUMSUB', `{trawl}:changed:${id}`]);
    return Number((reply as unknown[])[1]) > 0;
  };

  for (const version of ['1.1', '1.0']) {
    it(`gets the id of the job that it has started, by HTTP/${version}`, async () => {
      const { text } = await half(download(version));
      const { jobs } = (await api.get('/v1/jobs', caller.key)).json;
      expect(text).to.match(/^HTTP\/1\.1 202 /);
      expect(text.endsWith(`{"job_id":"${jobs[0]?.id}"}`), text).to.equal(true);
    });
  }

  it('gets the metadata that it has waited for, and is charged once', async () => {
    const said = half(metadata());
    await until(() => begun > 0, 10, 'the inspection has begun');
    release.resolve();
    const { text, body } = await said;
    expect(text).to.match(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
    expect(body).to.equal('{"metadata":{"id":"a"}}');
    expect([(await usage()).held, (await usage()).total_used]).to.deep.equal([0, 1]);
  });

  it('gets the answers to all its requests, also when the last one is not complete', async () => {
    const said = half(`${metadata()}GET /v1/us`);
    await until(() => begun > 0, 10, 'the inspection has begun');
    release.resolve();
    expect((await said).body).to.equal('{"metadata":{"id":"a"}}');
    const { text } = await half(download() + download() + get('/v1/usage?fields=held'));
    expect(text.match(/HTTP\/1\.1 2\d\d/g)).to.deep.equal(['HTTP/1.1 202', 'HTTP/1.1 202', 'HTTP/1.1 200']);
    expect(text).to.match(/\{"held":2\}$/);
  });

  for (const [title, rest, last] of [
    ['a waiting poll', '?wait=30&fields=status', /\{"status":"CompletedJob"\}$/],
    ['a stream of events', '/events', /event: end\ndata: .*\n\n\r\n0\r\n\r\n$/],
  ] as const) {
    it(`hears of the end of its job by ${title}`, async () => {
      const id = await submit();
      const said = half(get(`/v1/jobs/${id}${rest}`));
      await until(() => isWatched(id), 10, 'the job is watched');
      await endJob(api.store, id);
      expect((await said).text).to.match(last);
    });

    it(`is not waited for once it has left ${title}`, async () => {
      const id = await submit();
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1').on('error', () => {});
      socket.write(get(`/v1/jobs/${id}${rest}`));
      await until(() => isWatched(id), 10, 'the job is watched');
      socket.destroy();
      await until(async () => !(await isWatched(id)), 10, 'the job is watched no more');
    });
  }

  for (const [title, leave] of [
    [
      'is reset after the interim answer has come, as over a slow network',
      (socket: Socket) => socket.resetAndDestroy(),
    ],
    ['is closed by a proxy that has heard of it by the interim answer', (socket: Socket) => socket.destroy()],
  ] as const) {
    it(`has left when its connection ${title}: nothing is charged`, async () => {
      const socket = connect({ port: Number(new URL(api.url).port), host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', () => {}).once('data', () => leave(socket));
      socket.end(metadata());
      const ended = async () => {
        const { values } = await api.metrics.http_requests_total.get();
        return values.find(({ labels }) => labels.route === 'metadata')?.labels.status;
      };
      await until(async () => (await ended()) !== undefined, 10, 'the call has ended');
      // At the time limit of an inspection it would be 500.
      expect(await ended()).to.equal(499);
      expect([(await usage()).held, (await usage()).total_used]).to.deep.equal([0, 0]);
    });
  }

  it('is taken for one that has left when its HTTP/1.0 cannot tell the difference: no credit for metadata that nobody gets', async () => {
    const said = half(metadata('1.0'));
    expect((await said).text).to.equal('');
    await until(async () => (await usage()).held === 0, 10, 'the hold is released');
    expect((await usage()).total_used).to.equal(0);
  });
});

import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { film } from '../support/calls.ts';
import { sendRaw } from '../support/raw-http.ts';
import { until } from '../support/until.ts';

const maxWaiting = 100;

describe('requests behind another one of their connection', () => {
  let api: TestApi;
  let caller: ApiCaller;
  /** URLs that the inspector was asked for. */
  let asked: string[];
  let release: PromiseWithResolvers<void>;
  const start = async (adapt?: Parameters<typeof startApi>[1]) => {
    api = await startApi({}, adapt);
    caller = await api.addCaller({ credits: 10 });
    asked = [];
    release = Promise.withResolvers();
    api.inspect(async (url, _, gone) => {
      asked.push(url);
      if (url.endsWith('/slow')) await Promise.race([release.promise, gone]);
      return { metadata: { id: url, title: url } };
    });
  };
  beforeEach(() => start());
  afterEach(async () => {
    release.resolve();
    await api.stop();
  });

  const get = (path: string, headers = '') =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\n${headers}\r\n`;
  const metadata = (name: string, headers?: string) =>
    get(`/v1/media/metadata?fields=metadata.id&query=https://example.com/${name}`, headers);
  const usage = async () => (await api.get('/v1/usage', caller.key)).json;
  const countJobs = async () => (await api.get('/v1/jobs', caller.key)).json.jobs.length;
  const speak = async (bytes: string) => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.write(bytes);
    return socket;
  };

  it('are answered one after the other, in their order', async () => {
    const said = sendRaw(api.url, metadata('slow') + metadata('second') + metadata('third', 'Connection: close\r\n'));
    await until(() => asked.length > 0, 10, 'the first is asked for');
    release.resolve();
    const { text } = await said;
    expect(text.match(/example\.com\/\w+/g)).to.deep.equal(
      ['slow', 'second', 'third'].map((name) => `example.com/${name}`),
    );
    expect(asked.length).to.equal(3);
    expect((await usage()).total_used).to.equal(3);
  });

  it('are not begun when their caller leaves before the first is answered: no credit for an answer that cannot come', async () => {
    const socket = await speak(metadata('slow') + metadata('second') + get(`/v1/video/download?query=${film}`));
    await until(() => asked.length > 0, 10, 'the first is asked for');
    expect((await usage()).held).to.equal(1);
    socket.destroy();
    await until(async () => (await usage()).held === 0, 10, 'the hold of the first is released');
    expect(asked).to.deep.equal(['https://example.com/slow']);
    expect([(await usage()).total_used, await countJobs()]).to.deep.equal([0, 0]);
  });

  const closing: [title: string, bytes: () => string, status: string][] = [
    ['has two Hosts', () => get('/v1/usage', 'hOST: y\r\n'), '400'],
    [
      'has too large a body',
      () =>
        `POST /v1/video/download HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\nContent-Type: application/json\r\nContent-Length: 20000\r\n\r\n${'x'.repeat(20_000)}`,
      '413',
    ],
  ];
  for (const [title, bytes, status] of closing) {
    it(`start nothing when the first one ${title}, so that its answer closes the connection`, async () => {
      const { text } = await sendRaw(api.url, bytes() + get(`/v1/video/download?query=${film}`));
      expect(text.match(/HTTP\/1\.1 \d+/g)).to.deep.equal([`HTTP/1.1 ${status}`]);
      expect(await countJobs()).to.equal(0);
    });
  }

  const garbage: [title: string, bytes: string][] = [
    ['is no request', '} and so on'],
    ['is no request, in many pieces', '}'.repeat(500_000)],
    ['asks for a tunnel', 'CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ];
  for (const [title, bytes] of garbage) {
    it(`leave the first the id of its job when what follows ${title}, and the connection is closed`, async () => {
      const { text } = await sendRaw(api.url, get(`/v1/video/download?query=${film}`) + bytes);
      expect(text).to.match(/^HTTP\/1\.1 202 [\s\S]*"job_id":"[\w-]{36}"\}$/);
      const { text: slow } = await sendRaw(api.url, metadata('quick') + metadata('second') + bytes);
      expect(slow).to.match(/^HTTP\/1\.1 200 [\s\S]*example\.com\/quick"\}\}$/);
      expect([asked, await countJobs()]).to.deep.equal([['https://example.com/quick'], 1]);
    });
  }

  for (const [title, bytes] of [...garbage, ['never becomes complete', 'GET /v1/us']]) {
    it(`leave no charge for the first when its caller leaves, although what follows ${title}`, async () => {
      const socket = await speak(metadata('slow') + bytes);
      await until(() => asked.length > 0, 10, 'the first is asked for');
      await until(() => socket.writableLength === 0, 10, 'everything is sent');
      socket.destroy();
      // The record is asked over another connection, behind the end of this one.
      expect((await usage()).total_used).to.equal(0);
      release.resolve();
      await until(async () => (await usage()).held === 0, 10, 'the hold of the first is released');
      expect((await usage()).total_used).to.equal(0);
    });
  }

  it('are a fault of a body that is longer than it says, which is answered as the beginning of it', async () => {
    const body = `{"query":"${film}?é"}`;
    const head = `POST /v1/video/download HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\nContent-Type: application/json\r\n`;
    const { text } = await sendRaw(api.url, `${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    expect(text).to.match(/^HTTP\/1\.1 400 [\s\S]*\{"error":"Bad Request: the body must be a JSON object"\}$/);
  });

  it('leave the first its answer when one of them never becomes complete', async () => {
    const post = `POST /v1/video/download HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n`;
    const socket = await speak(metadata('slow') + metadata('second') + post);
    let text = '';
    socket.on('data', (data) => (text += data));
    await until(() => asked.length > 0, 10, 'the first is asked for');
    release.resolve();
    await until(() => text.includes('example.com/second'), 10, 'both are answered');
    await until(() => / 408 /.test(text), 10, 'the last one is cut off');
    expect(text.match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 408']);
  });

  it('leave the first its answer when one of them waits with its body for longer than a body may take', async () => {
    const timeouts = {
      headersMs: 1000,
      bodyMs: 1000,
      wholeBodyMs: 1000,
      keepAliveMs: 10_000,
      unreadMs: 10_000,
      checkMs: 15,
    };
    await api.stop();
    await start((parts) => ({ ...parts, timeouts }));
    const body = `{}${' '.repeat(300_000)}`;
    const batch = `POST /v1/batches HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-api-key: ${caller.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const said = sendRaw(api.url, metadata('slow') + batch);
    await until(() => asked.length > 0, 10, 'the first is asked for');
    // Each began after the batch and is cut off at one of its time limits.
    const late = 'POST /v1/video/download HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n';
    for (let n = 0; n < 2; n++) expect((await sendRaw(api.url, late)).status).to.equal(408);
    release.resolve();
    const { text } = await said;
    expect(text.match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 200', 'HTTP/1.1 400']);
    expect(text).to.match(/Bad Request: endpoint is required/);
  });

  it(`are all answered when ${maxWaiting} wait, and as many again after that`, async () => {
    const socket = await speak('');
    let text = '';
    socket.on('data', (data) => (text += data));
    for (const round of [1, 2]) {
      socket.write(metadata('slow') + get('/v1/usage').repeat(maxWaiting));
      await until(() => asked.length === round, 10, 'the first is asked for');
      release.resolve();
      const countAnswers = () => text.match(/HTTP\/1\.1 200/g)?.length ?? 0;
      await until(() => countAnswers() === round * (maxWaiting + 1), 10, 'all are answered');
      release = Promise.withResolvers();
    }
    socket.destroy();
  });

  it(`close the connection when more than ${maxWaiting} wait`, async () => {
    const socket = await speak(metadata('slow') + get('/v1/usage').repeat(maxWaiting + 1));
    await once(socket, 'close');
    await until(async () => (await usage()).held === 0, 10, 'the hold of the first is released');
    expect((await usage()).total_used).to.equal(0);
  });
});

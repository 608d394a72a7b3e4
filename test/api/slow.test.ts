import { expect } from 'chai';
import { type Desk, startApi, type TestApi } from '../support/api.ts';
import { expectSentence, type Said, speak } from '../support/wire.ts';

const timeouts = { headersMs: 150, requestMs: 300, keepAliveMs: 100, checkMs: 15 };
/** Node keeps an idle connection for a second more than it says. */
const idleMore = 1000;
const late = 'Bad Request: the request took too long to arrive';

describe('slow callers', () => {
  let api: TestApi;
  let desk: Desk;
  before(async () => {
    api = await startApi({}, (parts) => ({ ...parts, timeouts }));
    desk = await api.desk();
  });
  after(() => api.stop());

  const usage = () => `GET /v1/usage?fields=held HTTP/1.1\r\nHost: x\r\nx-api-key: ${desk.key}\r\n`;
  const post = (headers: string) =>
    `POST /v1/video/download HTTP/1.1\r\nHost: x\r\nx-api-key: ${desk.key}\r\nContent-Type: application/json\r\n${headers}\r\n`;
  const within = ({ seconds }: Said, milliseconds: number) =>
    expect(seconds * 1000).to.be.within(milliseconds - timeouts.checkMs, milliseconds + 1000);

  const slow: [title: string, limit: number, bytes: () => string, andThen?: string][] = [
    ['says nothing', timeouts.headersMs, () => ''],
    ['sends empty lines for ever', timeouts.headersMs, () => '\r\n', '\r\n'],
    ['stops within the headers', timeouts.headersMs, usage],
    ['sends headers for ever', timeouts.headersMs, usage, 'A: b\r\n'],
    ['stops within the body', timeouts.requestMs, () => post('Content-Length: 99\r\n')],
    ['sends the body byte by byte', timeouts.requestMs, () => post('Content-Length: 9999\r\n'), 'x'],
    ['sends chunks byte by byte', timeouts.requestMs, () => post('Transfer-Encoding: chunked\r\n'), '1\r\nx\r\n'],
  ];
  for (const [title, limit, bytes, andThen] of slow) {
    it(`one who ${title} is cut off with 408`, async () => {
      const said = await speak(api.url, bytes(), { every: 20, ...(andThen === undefined ? {} : { andThen }) });
      expectSentence(said);
      expect([said.status, JSON.parse(said.body).error]).to.deep.equal([408, late]);
      within(said, limit);
    });
  }

  it('one who sends a body that nobody reads has his answer, and is cut off', async () => {
    const said = await speak(api.url, `${usage()}Content-Length: 99999\r\n\r\n`, { andThen: 'x', every: 20 });
    expect(said.text).to.match(/^HTTP\/1\.1 200 .*\r\n\r\n\{"held":0\}/s);
    within(said, timeouts.requestMs);
  });

  it('one who asks nothing more is let go', async () => {
    const said = await speak(api.url, `${usage()}\r\n`);
    expect([said.status, said.body]).to.deep.equal([200, '{"held":0}']);
    within(said, timeouts.keepAliveMs + idleMore);
  });

  const half: [title: string, bytes: () => string, statuses: (number | null)[]][] = [
    // Nobody can know whether he still listens: his line may be closed without a word.
    ['after a request', () => `${usage()}\r\n`, [200, null]],
    ['within the headers', usage, [400]],
    ['within the body', () => post('Content-Length: 99\r\n'), [400]],
  ];
  for (const [title, bytes, statuses] of half) {
    it(`one who ends his side ${title} is let go at once`, async () => {
      const said = await speak(api.url, bytes(), { end: true });
      expect(said.status, said.text).to.be.oneOf(statuses);
      if (said.status === 400) expectSentence(said);
    });
  }

  it('and the next caller is served', async () => {
    expect((await api.get('/v1/usage', desk.key)).status).to.equal(200);
    expect(api.lines.filter((line) => line.includes('"level":"error"'))).to.deep.equal([]);
  });
});

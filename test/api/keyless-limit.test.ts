import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.ts';
import { film } from '../support/calls.ts';
import { deliverBytes } from '../support/deliver-bytes.ts';
import { until } from '../support/until.ts';

describe('the limit of requests without a key', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_TRUSTED_PROXIES: '127.0.0.1/32' });
  });
  after(() => api.stop());

  const ask = async (url: string, from: string) => {
    const answer = await fetch(url, { headers: { 'x-forwarded-for': from } });
    await answer.arrayBuffer();
    return answer;
  };
  const paths = ['/openapi.json', '/', '/docs', '/files/none/none.mp4'];

  it('is 600 a minute and address for links, the document and its pages together, and leaves calls with a key alone', async () => {
    const { key } = await api.addCaller();
    for (let n = 0; n < 600; n++) {
      const { status } = await ask(api.url + paths[n % paths.length], '2001:db8::1');
      expect(status, `request ${n}`).not.to.equal(429);
    }
    for (const path of paths) {
      const { status, headers } = await ask(api.url + path, '2001:db8::2');
      expect([status, headers.get('x-error-code')], path).to.deep.equal([429, 'rate_limited']);
      expect(Number(headers.get('retry-after'))).to.be.within(1, 60);
    }
    expect((await ask(`${api.url}/openapi.json`, '192.0.2.1')).status).to.equal(200);
    const headers = { 'x-forwarded-for': '2001:db8::1' };
    expect((await api.call('GET', '/v1/usage', { key, headers })).status).to.equal(200);
  });

  it('is 200 downloads at once of an address, however slowly it reads them, and leaves other addresses alone', async () => {
    const { key } = await api.addCaller();
    const { job_id: id } = (await api.get('/v1/video/download', key, { query: film })).json;
    await deliverBytes(api, id, Buffer.alloc(20_000_000));
    const link = (await api.get(`/v1/jobs/${id}`, key)).json.result.response;
    const left = new AbortController();
    const begin = (from: string) => fetch(link, { headers: { 'x-forwarded-for': from }, signal: left.signal });
    const slow = await Promise.all(Array.from({ length: 200 }, () => begin('192.0.2.20')));
    expect(new Set(slow.map(({ status }) => status))).to.deep.equal(new Set([200]));
    const refused = await begin('192.0.2.20');
    const told = [refused.status, refused.headers.get('x-error-code'), refused.headers.get('retry-after')];
    expect(told).to.deep.equal([429, 'rate_limited', '5']);
    expect((await ask(link, '192.0.2.21')).status).to.equal(200);
    await slow[0]?.body?.cancel();
    await until(async () => (await ask(link, '192.0.2.20')).status === 200, 10, 'the end of one makes room');
    left.abort();
  });

  it('counts no sign-in whose caller was gone before its compressed body was read', async () => {
    const { origin, port, hostname: host } = new URL(api.dashboardUrl);
    const from = '192.0.2.30';
    const body = gzipSync(JSON.stringify({ token: 'x'.repeat(15_000) }));
    const head = `POST /api/sign-in HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${from}\r\nOrigin: ${origin}\r\nContent-Type: application/json\r\n`;
    const request = Buffer.concat([
      Buffer.from(`${head}Content-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n`),
      body,
    ]);
    for (let n = 0; n < 300; n++) {
      const socket = connect(Number(port), host);
      socket.write(request, () => socket.resetAndDestroy());
      await once(socket, 'close');
    }
    const { status } = await fetch(`${origin}/api/sign-in`, {
      method: 'POST',
      headers: { origin, 'x-forwarded-for': from, 'content-type': 'application/json' },
      body: '{"token":"x"}',
    });
    expect(status).to.equal(401);
  });

  it('is 600 a minute and address for the pages of the dashboard', async () => {
    for (let n = 0; n < 600; n++) {
      expect((await ask(`${api.dashboardUrl}/sign-in`, '192.0.2.7')).status, `request ${n}`).to.equal(200);
    }
    const refused = await ask(`${api.dashboardUrl}/`, '192.0.2.7');
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).to.deep.equal([429, true]);
    for (const path of ['/api/sign-in', '/app.js']) {
      expect((await ask(api.dashboardUrl + path, '192.0.2.7')).status, path).to.equal(200);
    }
    expect((await ask(`${api.dashboardUrl}/`, '192.0.2.8')).status).to.equal(200);
  });

  it('is 600 a minute and address for what the dashboard takes without a session', async () => {
    const post = async (from: string, body: object) => {
      const headers = { 'x-forwarded-for': from, origin: api.dashboardUrl, 'content-type': 'application/json' };
      const path = `${api.dashboardUrl}/api/sign-in/forgotten`;
      const answer = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
      await answer.arrayBuffer();
      return answer;
    };
    // No mail server is there, so it is answered before anything is done.
    for (let n = 0; n < 600; n++) {
      expect((await post('192.0.2.9', {})).status, `request ${n}`).to.equal(404);
    }
    const refused = await post('192.0.2.9', {});
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).to.deep.equal([429, true]);
    expect((await post('192.0.2.10', {})).status).to.equal(404);
  });
});

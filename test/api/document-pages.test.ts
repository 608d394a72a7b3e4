import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.ts';
import { expectRefused } from '../support/calls.ts';

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

describe('pages about the API', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_PUBLIC_URL: 'https://trawl.example/"><script>' });
  });
  after(() => api.stop());

  for (const path of ['/', '/docs']) {
    it(`D77: ${path} is HTML without a key, in no frame, with nothing of another origin`, async () => {
      const { status, headers, text } = await api.get(path);
      expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8']);
      expect(headers.get('content-security-policy')).to.equal(policy);
      expect(headers.get('referrer-policy')).to.equal('no-referrer');
      const loaded = [...text.matchAll(/<(?:link|script)[^>]* (?:href|src)="([^"]*)"/g)].map(([, target]) => target!);
      expect(loaded).to.not.deep.equal([]);
      for (const target of loaded) {
        expect(target).to.match(/^docs\/[\w.-]+$/);
        expect((await api.get(`/${target}`)).status, target).to.equal(200);
      }
      expect(text).to.not.match(/<script>|<style| style=| on\w+=/);
    });
  }

  it('says the address of the service, and never as code', async () => {
    const { text } = await api.get('/');
    expect(text).to.contain('https://trawl.example/&quot;&gt;&lt;script&gt;/v1/video/download?query=');
    expect(text).to.not.contain('{{');
  });

  it('delivers only its own files, to HEAD without a body, pressed where that is understood', async () => {
    const path = '/docs/swagger-ui-bundle.js';
    const head = await api.call('HEAD', path);
    expect([head.status, head.text]).to.deep.equal([200, '']);
    const plain = await api.call('GET', path, { headers: { 'accept-encoding': 'identity' } });
    const pressed = await api.get(path);
    expect([plain.headers.get('content-encoding'), pressed.headers.get('content-encoding')]).to.deep.equal([
      null,
      'gzip',
    ]);
    expect(pressed.text).to.equal(plain.text);
    expect(Number(pressed.headers.get('content-length'))).to.be.below(plain.text.length / 2);
    for (const other of ['package.json', '..%2fapp.ts', 'constructor', 'index.html']) {
      expectRefused(await api.get(`/docs/${other}`), 404, 'not_found', 'Not Found');
    }
  });
});

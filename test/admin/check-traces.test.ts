import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { checkTraces } from '../../src/admin/check-partners.ts';

describe('trawl doctor, of traces', () => {
  it('asks the collector of traces, where one is named', async () => {
    const statuses = [200, 403];
    const collector = createServer((_, res) => res.writeHead(statuses.shift() ?? 500).end());
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
    const tracesUrl = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`;
    const ask = async () => (await checkTraces({ tracesUrl })).map(({ level, text }) => `${level} ${text}`);
    expect(await checkTraces({ tracesUrl: null })).to.deep.equal([]);
    expect(await ask()).to.deep.equal([`ok ${tracesUrl} takes spans.`]);
    expect(await ask()).to.deep.equal([`note ${tracesUrl} answers 403 to spans: they are dropped.`]);
    await new Promise((resolve) => collector.close(resolve));
    expect((await ask())[0]).to.match(/^note .* cannot be asked: .+\. Spans are dropped\.$/);
  });

  it('shows the collector the headers that API, dashboard and controller show it', async () => {
    const collector = createServer(({ headers }, res) =>
      res.writeHead(headers.authorization === 'Bearer a' ? 200 : 401).end(),
    );
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
    const tracesUrl = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`;
    const name = 'OTEL_EXPORTER_OTLP_HEADERS';
    try {
      process.env[name] = 'authorization=Bearer%20a';
      expect((await checkTraces({ tracesUrl }))[0]?.text).to.equal(`${tracesUrl} takes spans.`);
    } finally {
      delete process.env[name];
      await new Promise((resolve) => collector.close(resolve));
    }
  });
});

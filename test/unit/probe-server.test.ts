import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { startProbeServer } from '../../src/base/probe-server.ts';

describe('the probe', () => {
  const metrics = makeMetrics();
  let missing: string[] | Error = [];
  let probe: Awaited<ReturnType<typeof startProbeServer>>;

  const ready = () => {
    if (missing instanceof Error) throw missing;
    return missing;
  };
  before(async () => {
    probe = await startProbeServer({ at: { port: 0, host: '127.0.0.1' }, metrics, ready });
  });
  beforeEach(() => {
    missing = [];
  });
  after(() => probe.close());

  const ask = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${probe.port}${path}`, { method });

  it('answers /healthz with ok, whatever is missing', async () => {
    missing = ['record'];
    const answer = await ask('/healthz');
    expect([answer.status, await answer.text()]).to.deep.equal([200, 'ok']);
  });

  it('answers /readyz with 200 when nothing is missing', async () => {
    const answer = await ask('/readyz');
    expect([answer.status, await answer.json()]).to.deep.equal([200, { ready: true }]);
    expect(answer.headers.get('content-type')).to.equal('application/json');
  });

  it('answers /readyz with 503 and the names of what is missing', async () => {
    missing = ['record', 'egress'];
    const answer = await ask('/readyz?verbose');
    expect([answer.status, await answer.json()]).to.deep.equal([503, { ready: false, missing: ['record', 'egress'] }]);
  });

  it('answers /metrics in the format of Prometheus, never from a cache', async () => {
    metrics.overdrafts_total.inc(3);
    const answer = await ask('/metrics');
    expect(answer.headers.get('content-type')).to.match(/^text\/plain; version=0\.0\.4/);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    expect(await answer.text()).to.match(/^trawl_overdrafts_total 3$/m);
  });

  it('shows NaN as the format of Prometheus spells it', async () => {
    metrics.oldest_queued_seconds.set(Number.NaN);
    const text = await (await ask('/metrics')).text();
    expect(text).to.match(/^trawl_oldest_queued_seconds NaN$/m);
    expect(text).not.to.match(/ Nan$/m);
  });

  for (const path of ['/', '/healthz/', '/metrics/x', '/Healthz', '//healthz', '/v1/usage']) {
    it(`answers ${path} with 404`, async () => {
      const answer = await ask(path);
      await answer.text();
      expect(answer.status).to.equal(404);
    });
  }

  for (const [path, status] of [
    ['/healthz', 200],
    ['/metrics', 200],
    ['/nothing', 404],
  ] as const) {
    it(`answers HEAD ${path} with ${status} and no body`, async () => {
      const answer = await ask(path, 'HEAD');
      expect([answer.status, await answer.text()]).to.deep.equal([status, '']);
      expect(Number(answer.headers.get('content-length'))).to.be.above(0);
    });
  }

  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    it(`answers ${method} with 405 and what is allowed`, async () => {
      const answer = await ask('/healthz', method);
      await answer.text();
      expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD']);
    });
  }

  it('answers 500 and goes on when readiness cannot be determined', async () => {
    missing = new Error('broken');
    const answer = await ask('/readyz');
    expect([answer.status, await answer.text()]).to.deep.equal([500, 'Error: broken']);
    const next = await ask('/healthz');
    expect([next.status, await next.text()]).to.deep.equal([200, 'ok']);
  });

  it('refuses a port that is taken with an error that names it', async () => {
    const second = startProbeServer({ at: { port: probe.port, host: '127.0.0.1' }, metrics, ready });
    expect(await second.then(() => 'started', String)).to.contain(`:${probe.port}`);
  });

  it('closes connections that are open, and may be closed again', async () => {
    const other = await startProbeServer({ at: { port: 0, host: '127.0.0.1' }, metrics, ready });
    const socket = connect(other.port, '127.0.0.1');
    const closed = once(socket, 'close');
    await once(socket, 'connect');
    await other.close();
    await other.close();
    await closed;
    expect(
      await fetch(`http://127.0.0.1:${other.port}/healthz`).then(
        () => 'open',
        () => 'closed',
      ),
    ).to.equal('closed');
  });
});

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../../src/base/config.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeShutdown } from '../../src/base/shutdown.ts';
import type { EndedSpan } from '../../src/base/traces.ts';
import { openTraces } from '../../src/roles/open-traces.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { invited, openBrowser } from '../support/browser-session.ts';
import { type Collector, type SeenSpan, startCollector } from '../support/collector.ts';
import { freePort } from '../support/free-port.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { aLog } from '../support/redis.ts';
import { makeService } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

const kinds = { server: 2, client: 3 };
const caller = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
/** Stages that pass between two reports of a worker may be missing. */
const passing = ['fetch', 'convert', 'prove'];

/** Names of spans, each below its parent, in the order of time. */
function treeOf(spans: readonly SeenSpan[], parent = '', depth = 0): string[] {
  const known = new Set(spans.map(({ spanId }) => spanId));
  return spans
    .filter(({ parentSpanId }) => (depth === 0 ? !known.has(parentSpanId) : parentSpanId === parent))
    .toSorted((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)))
    .flatMap((span) => [
      `${'  '.repeat(depth)}${span.name}${span.failure === undefined ? '' : `: ${span.failure}`}`,
      ...treeOf(spans, span.spanId, depth + 1),
    ]);
}

describe('traces through trawl up', function () {
  this.timeout(600_000);
  const service = makeService({ TRAWL_WORKERS: '2', TRAWL_WEBHOOK_GAP_SECONDS: '1' });
  const loads = join(service.folder, 'loads.mjs');
  let collector: Collector;
  let films: Source;
  let receiver: Receiver;
  let key: string;
  let failuresLeft = 1;

  before(async () => {
    [collector, films] = [await startCollector(), await startSource()];
    receiver = await startReceiver((_, res) => res.writeHead(failuresLeft-- > 0 ? 500 : 200).end());
    // The metrics load the API of OpenTelemetry, and the client of Redis has a folder of that name.
    const told = "process.stderr.write('module ' + url + '\\n')";
    const hook = `load: (url, context, next) => { if (/@opentelemetry.(?!api.)/.test(url)) ${told}; return next(url, context); }`;
    writeFileSync(loads, `import { registerHooks } from 'node:module'; registerHooks({ ${hook} });`);
  });
  after(async () => {
    await service.close();
    await collector?.stop();
    for (const server of [films, receiver]) await server?.stop();
  });

  const start = (url: string) => service.start({ TRAWL_TRACES_URL: url, NODE_OPTIONS: `--import=${loads}` });
  const submit = async (path: string, headers: Readonly<Record<string, string>> = {}): Promise<string> => {
    const { status, json } = await service.ask(key, `/v1/video/download?query=${films.url}${path}`, headers);
    expect(status).to.equal(202);
    return json.job_id;
  };
  /** The spans of the trace of a job, as soon as those that end last are there. */
  const traceOf = async (jobId: string, last: string, times = 1): Promise<SeenSpan[]> => {
    const own = () => collector.spans().filter(({ attributes }) => attributes['trawl.job.id'] === jobId);
    await until(() => own().filter(({ name }) => name === last).length === times, 20, `the spans of ${jobId}`);
    return own();
  };
  const shown = (spans: readonly SeenSpan[]) => treeOf(spans.filter(({ name }) => !passing.includes(name)));

  it('one trace leads from the request of a caller to the webhook of its job', async () => {
    await start(collector.url);
    key = (await service.aCustomer()).key;
    const traceparent = `00-${caller.traceId}-${caller.spanId}-01`;
    const hook = encodeURIComponent(`${receiver.url}/hook?token=of-the-receiver`);
    const id = await submit(`/films/clip.mp4&webhook_url=${hook}&webhook_authorization=a-secret`, { traceparent });
    await service.ended([id], 60);
    const spans = await traceOf(id, 'webhook', 2);
    expect(shown(spans)).to.deep.equal([
      'GET /v1/video/download',
      '  job',
      '    queue',
      '    attempt',
      '      start',
      '      inspect',
      '      upload',
      '    settle',
      '    webhook: again',
      '    webhook',
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId))).to.deep.equal(new Set([caller.traceId]));
    const [request] = spans.filter(({ kind }) => kind === kinds.server);
    expect(request?.parentSpanId).to.equal(caller.spanId);
    expect(request?.attributes).to.include({ 'http.route': '/v1/video/download', 'http.response.status_code': 202 });
    const given = receiver.of(id).map(({ headers }) => headers.traceparent);
    const sent = spans
      .filter(({ kind }) => kind === kinds.client)
      .map(({ spanId }) => `00-${caller.traceId}-${spanId}-01`);
    expect(given.toSorted(), 'what the receiver was told').to.deep.equal(sent.toSorted());
    expect(JSON.stringify(spans)).not.to.match(/of-the-receiver|a-secret|query=|127\.0\.0\.1|clip/);
    expect(JSON.stringify(spans)).not.to.include(key);
    expect(collector.resources()).to.have.length(1);
    expect(collector.resources()[0]).to.include('"service.name":"trawl"');
    const lines = service.up().output();
    expect(lines).to.match(new RegExp(`"text":"the job ended".*"trace_id":"${caller.traceId}"`));
    expect(lines).to.match(new RegExp(`webhook ended".*"trace_id":"${caller.traceId}"`));
  });

  it('a job whose worker was killed has both attempts in its trace', async () => {
    const release = films.hold();
    const id = await submit('/held/clip.mp4');
    const running = () => service.withStore(async (store) => (await readJob(store, id))?.status === 'Running');
    await until(async () => films.asked.includes('/held/clip.mp4') && running(), 30, 'the job is asked for');
    for (const pid of service.processes(/main\.ts worker/)) process.kill(pid, 'SIGKILL');
    release();
    await service.ended([id], 60);
    const spans = await traceOf(id, 'settle');
    expect(shown(spans)).to.deep.equal([
      'GET /v1/video/download',
      '  job',
      '    queue',
      '    attempt: worker_lost',
      '      start',
      '      inspect',
      '    queue',
      '    attempt',
      '      start',
      '      inspect',
      '      upload',
      '    settle',
    ]);
    const attempts = spans.filter(({ name }) => name === 'attempt').map(({ attributes }) => attributes['trawl.class']);
    expect(attempts.toSorted()).to.deep.equal(['done', 'interrupted']);
    expect(spans.find(({ kind }) => kind === kinds.server)?.parentSpanId, 'a trace of its own').to.equal('');
  });

  it('failed and cancelled jobs say so, and a call without a known key leaves no span', async () => {
    const failed = await submit('/status/404');
    await service.ended([failed], 60);
    const lost = ['GET /v1/video/download', '  job: deleted', '    queue', '    attempt: deleted', '      start'];
    expect(shown(await traceOf(failed, 'settle'))).to.deep.equal([...lost, '      inspect', '    settle']);
    const release = films.hold();
    const cancelled = await submit('/held/clip.mp4');
    await fetch(`${service.up().url}/v1/jobs/${cancelled}`, { method: 'DELETE', headers: { 'x-api-key': key } });
    const [first, second] = shown(await traceOf(cancelled, 'job'));
    expect([first, second]).to.deep.equal(['GET /v1/video/download', '  job: cancelled']);
    release();
    await service.ask('unknown', '/v1/video/download?query=x');
    const unsampled = `00-${'c'.repeat(32)}-${caller.spanId}-00`;
    const silent = await submit('/status/404', { traceparent: unsampled });
    await service.ended([silent], 60);
    const later = await submit('/status/404');
    await service.ended([later], 60);
    await traceOf(later, 'settle');
    const requests = collector.spans().filter(({ kind }) => kind === kinds.server);
    expect(requests.map(({ attributes }) => attributes['http.response.status_code'])).not.to.include(401);
    expect(collector.spans().map(({ traceId }) => traceId)).not.to.include('c'.repeat(32));
  });

  it('a job that a person starts on the dashboard has the span of that call', async () => {
    const url = /Its dashboard is at (\S+)/.exec(service.up().output())?.[1] ?? '';
    const browser = openBrowser(url);
    const { account } = await service.aCustomer();
    await browser.signIn(await service.withStore((store) => invited(store, account)));
    const { status, json } = await browser.ask('POST', '/api/jobs', { query: `${films.url}/status/404` });
    expect(status, JSON.stringify(json)).to.equal(202);
    await service.ended([json.job_id], 60);
    const [first, second] = shown(await traceOf(json.job_id, 'settle'));
    expect([first, second]).to.deep.equal(['POST /v1/video/download', '  job: deleted']);
  });

  it('jobs end as ever while the collector is away, which a warning and a metric tell', async () => {
    expect(await service.stop()).to.equal(0);
    await start(`http://127.0.0.1:${await freePort()}/v1/traces`);
    const id = await submit('/films/clip.mp4');
    const [job] = await service.ended([id], 60);
    expect(job?.status).to.equal('CompletedJob');
    await until(() => /spans are dropped/.test(service.up().output()), 20, 'the warning');
    expect(service.up().output()).to.include('module file:').and.include('@opentelemetry/sdk-trace');
    expect(await service.stop()).to.equal(0);
  });

  it('no SDK of OpenTelemetry is loaded without a collector, and jobs keep no trace', async () => {
    await start('');
    const traceparent = `00-${caller.traceId}-${caller.spanId}-01`;
    const hook = encodeURIComponent(`${receiver.url}/hook`);
    const id = await submit(`/status/404&webhook_url=${hook}`, { traceparent });
    const [job] = await service.ended([id], 60);
    expect(job?.trace).to.equal(null);
    const [posted] = (await until(() => receiver.of(id).length > 0 && receiver.of(id), 20, 'the webhook')) || [];
    expect(posted?.headers).not.to.have.property('traceparent');
    expect(service.up().output()).not.to.match(/^module|trace_id/m);
  });
});

describe('spans for a collector', () => {
  const span = (n: number): EndedSpan => ({
    ...{ name: 'queue', kind: 'internal', traceId: caller.traceId, parentId: caller.spanId },
    spanId: (n + 1).toString(16).padStart(16, '0'),
    ...{ beganAt: 1, endedAt: 2, failure: null, attributes: {} },
  });
  const countOf = async (metrics: ReturnType<typeof makeMetrics>, outcome: string) =>
    (await metrics.spans_total.get()).values.find(({ labels }) => labels.outcome === outcome)?.value ?? 0;

  it('are sent, or counted as dropped where too many wait for one that hangs', async () => {
    const held: (() => void)[] = [];
    const server = createServer((req, res) => {
      req.resume();
      held.push(() => res.end());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
    const [metrics, { log, lines }] = [makeMetrics(), aLog()];
    const stop = makeShutdown();
    const traces = (await openTraces({ config: readConfig({ TRAWL_TRACES_URL: url }), metrics, log, stop }))!;
    try {
      for (let n = 0; n < 10_100; n++) traces.record(span(n));
      expect(await countOf(metrics, 'dropped')).to.equal(100);
      expect(lines.filter((line) => /spans are dropped/.test(line))).to.have.length(1);
      await until(() => held.length > 0, 20, 'the first batch');
      const areSent = async () => {
        for (const answer of held.splice(0)) answer();
        return (await countOf(metrics, 'exported')) === 10_000;
      };
      await until(areSent, 20, 'all others are sent');
    } finally {
      await stop.run();
      server.closeAllConnections();
      server.close();
    }
  });
});

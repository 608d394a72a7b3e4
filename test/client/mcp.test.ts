import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect } from 'chai';
import { defaultPatience } from '../../src/client/patience.ts';
import { remoteService } from '../../src/client/remote-service.ts';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { aFilm, startApi, type TestApi } from '../support/api.ts';
import { startCommand } from '../support/caller.ts';
import { film } from '../support/calls.ts';
import { startFaultyLink } from '../support/faulty-link.ts';
import { endJob } from '../support/job-steps.ts';
import type { Json } from '../support/json.ts';
import { completed } from '../support/record.ts';
import { aFolder } from '../support/redis.ts';
import { root } from '../support/tree.ts';
import { until } from '../support/until.ts';

describe('trawl mcp', () => {
  const { signal } = new AbortController();
  let api: TestApi;
  let folder: string;
  let remove: () => void;
  before(async () => {
    api = await startApi();
    ({ folder, remove } = aFolder());
  });
  after(async () => {
    await api.stop();
    remove();
  });

  const connect = async (url: string, key: string) => {
    const env = { PATH: process.env.PATH ?? '', HOME: folder, TRAWL_API_URL: url, TRAWL_API_KEY: key };
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StdioClientTransport({ command: `${root}/trawl`, args: ['mcp'], env }));
    return client;
  };

  it('serves the same tools on standard input and output, with progress and without its key', async () => {
    const { key } = await api.addCaller();
    const client = await connect(api.url, key);
    const heard: number[] = [];
    const use = async (name: string, given: Record<string, unknown>) => {
      const onprogress = ({ progress }: { progress: number }) => void heard.push(progress);
      const asked = { method: 'tools/call', params: { name, arguments: given } } as const;
      const result = await client.request(asked, CallToolResultSchema, { onprogress });
      expect(JSON.stringify(result)).not.to.contain(key);
      const [content] = result.content;
      return JSON.parse(content?.type === 'text' ? content.text : '') as Json;
    };
    try {
      expect((await client.listTools()).tools.map(({ name }) => name)).to.deep.equal([
        ...['metadata', 'download', 'job', 'usage'],
      ]);
      const { job_id, status } = await use('download', { query: film, wait_seconds: 0.1 });
      expect(status).to.equal('QueuedJob');
      const ended = use('job', { job_id });
      await endJob(api.store, job_id, completed);
      expect([(await ended).status, heard.length > 0]).to.deep.equal(['CompletedJob', true]);
      expect((await use('usage', {})).remaining).to.equal(99);
      expect(await use('download', { query: 'ftp://x' })).to.deep.equal({
        error: 'Bad Request: query must be an http or https URL',
        error_code: 'bad_request',
      });
    } finally {
      await client.close();
    }
  });

  it('starts one job and charges metadata once when answers are lost, and when a tool is repeated with its key', async () => {
    const { key, account } = await api.addCaller();
    const link = await startFaultyLink();
    link.lead(api.url);
    const client = await connect(link.url, key);
    const use = async (name: string, given: Record<string, unknown>) => {
      const { content } = CallToolResultSchema.parse(await client.callTool({ name, arguments: given }));
      return JSON.parse(content[0]?.type === 'text' ? content[0].text : '') as Json;
    };
    try {
      link.loseAnswers(/^\/v1\/video\/download/, 2);
      const { job_id } = await use('download', { query: film, wait_seconds: 0 });
      const keys = link.calls
        .filter(({ path }) => path.startsWith('/v1/video/download'))
        .map(({ headers }) => headers['idempotency-key']);
      expect([keys.length, new Set(keys).size]).to.deep.equal([3, 1]);
      const again = await use('download', { query: film, wait_seconds: 0, idempotency_key: String(keys[0]) });
      expect(again.job_id).to.equal(job_id);
      expect((await use('download', { query: film, wait_seconds: 0 })).job_id).not.to.equal(job_id);
      const { jobs } = await listJobs(api.store, account, { status: undefined, limit: 9, after: null });
      expect(jobs).to.have.length(2);
      link.loseAnswers(/^\/v1\/media\/metadata/, 1);
      expect((await use('metadata', { query: film })).metadata.title).to.equal('A film');
      expect((await use('usage', {})).total_used).to.equal(1);
    } finally {
      await client.close();
      await link.stop();
    }
  });

  it('waits longer for metadata than for a first answer', async () => {
    const { key } = await api.addCaller();
    const limits = { ...defaultPatience };
    const service = remoteService({ url: api.url, key }, limits);
    const read = () => service.call({ operation: 'metadata', signal, parameters: { query: film } });
    expect(await read()).to.have.property('body');
    limits.firstMs = limits.minTryMs = 50;
    api.inspect(() => new Promise((resolve) => setTimeout(resolve, 2 * limits.firstMs, { metadata: aFilm })));
    expect(await read()).to.have.property('body');
  });

  it('names the key of a call that may have been carried out', async () => {
    const { key } = await api.addCaller();
    const link = await startFaultyLink();
    link.lead(api.url);
    try {
      const service = remoteService({ url: link.url, key }, { ...defaultPatience, firstMs: 200 });
      link.loseAnswers(/^\/v1\/video\/download/, 1_000);
      const asked = { operation: 'video', signal, parameters: { query: film }, idempotencyKey: 'mine' } as const;
      const told = await service.call(asked);
      expect(told).to.have.property('error_code', 'unavailable');
      expect('error' in told && told.error).to.match(/ repeat it with idempotency_key mine,/);
      link.mend();
      link.lead(null);
      const away = await service.call(asked);
      expect('error' in away && away.error).to.match(/^No way to /);
    } finally {
      await link.stop();
    }
  });

  it('takes a refusal that soft_fail answers with status 200 for the refusal that it is', async () => {
    const service = remoteService({ url: api.url, key: (await api.addCaller()).key });
    for (const operation of ['video', 'metadata'] as const) {
      const parameters = { query: 'ftp://x', soft_fail: true };
      expect(await service.call({ operation, signal, parameters })).to.deep.equal({
        error: 'Bad Request: query must be an http or https URL',
        error_code: 'bad_request',
      });
    }
  });

  it('ends a call that its program cancels, which is charged nothing, but no job that it has started, and all calls with its input', async () => {
    const { key } = await api.addCaller();
    let asked = 0;
    api.inspect(() => {
      asked += 1;
      return new Promise(() => {});
    });
    const client = await connect(api.url, key);
    const cancel = new AbortController();
    try {
      const params = { name: 'metadata', arguments: { query: film } };
      const call = client.callTool(params, undefined, { signal: cancel.signal }).catch(() => 'cancelled');
      await until(() => asked === 1, 20, 'metadata is read');
      cancel.abort();
      expect(await call).to.equal('cancelled');
      const isFree = async () => (await api.get('/v1/usage', key)).json.held === 0;
      await until(isFree, 20, 'the credit is free again');
      expect((await api.get('/v1/usage', key)).json.total_used).to.equal(0);
      const stop = new AbortController();
      const download = { name: 'download', arguments: { query: film } };
      const started = client.callTool(download, undefined, { signal: stop.signal }).catch(() => 'cancelled');
      await until(async () => !(await isFree()), 20, 'the job is started');
      stop.abort();
      expect(await started).to.equal('cancelled');
      // An answer to a later call: the program has taken the cancel before.
      await client.callTool({ name: 'usage', arguments: {} });
      expect((await api.get('/v1/usage', key)).json.held).to.equal(1);
    } finally {
      await client.close();
    }
    const told = [
      { id: 1, method: 'tools/call', params: { name: 'metadata', arguments: { query: film } } },
      { id: 2, method: 'tools/call', params: { name: 'download', arguments: { query: film } } },
    ].map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const env = { TRAWL_API_URL: api.url, TRAWL_API_KEY: key };
    expect(await startCommand(['mcp'], folder, env, told.join('')).ended).to.equal(0);
  });

  it('ends with its input, and tells of a service that is not known', async () => {
    const known = startCommand(['mcp'], folder, { TRAWL_API_URL: api.url, TRAWL_API_KEY: 'k' });
    expect([await known.ended, known.out(), known.err()]).to.deep.equal([0, '', '']);
    const unknown = startCommand(['mcp'], folder, {});
    expect([await unknown.ended, unknown.out()]).to.deep.equal([2, '']);
    expect(unknown.err()).to.contain("run 'trawl login URL'");
  });
});

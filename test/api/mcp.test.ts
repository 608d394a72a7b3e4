import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect } from 'chai';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import type { Json } from '../support/json.ts';
import { completed, failed } from '../support/record.ts';
import { until } from '../support/until.ts';

const accept = 'application/json, text/event-stream';

describe('POST /mcp', () => {
  let api: TestApi;
  let caller: ApiCaller;
  const clients: Client[] = [];
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000' });
  });
  after(() => api.stop());
  beforeEach(async () => {
    caller = await api.addCaller();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
  });

  const connect = async (headers: Record<string, string> = { 'x-api-key': caller.key }) => {
    const client = new Client({ name: 'test', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(`${api.url}/mcp`), { requestInit: { headers } });
    clients.push(client);
    await client.connect(transport as Parameters<Client['connect']>[0]);
    return client;
  };
  const use = async (client: Client, name: string, given: object, progress?: (words: string) => void) => {
    const onprogress =
      progress &&
      (({ progress: part, message = '' }: { progress: number; message?: string }) => progress(`${part} ${message}`));
    const options = onprogress ? { onprogress } : {};
    const params = { name, arguments: { ...given } };
    const result = await client.request({ method: 'tools/call', params }, CallToolResultSchema, options);
    expect(JSON.stringify(result)).not.to.contain(caller.key);
    const [content] = result.content;
    return { isError: result.isError === true, told: JSON.parse(content?.type === 'text' ? content.text : '') as Json };
  };
  const post = (body: object | string, headers: Record<string, string> = {}) =>
    api.call('POST', '/mcp', { key: caller.key, body, headers: { accept, ...headers } });
  const toolCall = (given: object = { query: film }, name = 'download') => ({
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name, arguments: given },
  });
  const openJobs = async () =>
    (await listJobs(api.store, caller.account, { status: undefined, limit: 9, after: null })).jobs;

  it('lists four tools, whose parameters are those of the API, to a key in either header', async () => {
    const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);
    const wanted = ['metadata', 'download', 'job', 'usage'];
    expect(await names(await connect())).to.deep.equal(wanted);
    const client = await connect({ authorization: `Bearer ${caller.key}` });
    expect(await names(client)).to.deep.equal(wanted);
    const { tools } = await client.listTools();
    const { properties, required } = tools[1]!.inputSchema;
    expect(required).to.deep.equal(['query']);
    expect(Object.keys(properties!)).to.include.members([
      'query',
      'kind',
      'video_quality',
      'audio_format',
      'wait_seconds',
    ]);
    expect(Object.keys(properties!).filter((name) => name.startsWith('webhook'))).to.deep.equal([]);
  });

  it('forbids proxies to compress its events, which would keep back the end of each until the next one', async () => {
    const { headers } = await post(toolCall({}, 'usage'));
    expect([headers.get('content-type'), headers.get('cache-control')]).to.deep.equal([
      'text/event-stream',
      'no-store, no-transform',
    ]);
  });

  it('downloads with progress, and answers with the link to the file', async () => {
    const told: string[] = [];
    const client = await connect();
    const running = use(client, 'download', { query: film, video_quality: '720p' }, (words) => told.push(words));
    await until(async () => (await openJobs()).length === 1, 5, 'a job');
    await until(() => told.length > 0, 5, 'progress');
    const [job] = await openJobs();
    await endJob(api.store, job!.id, completed);
    const { isError, told: result } = await running;
    expect([isError, result.job_id, result.status, job!.args.video_quality]).to.deep.equal([
      false,
      job!.id,
      'CompletedJob',
      '720p',
    ]);
    expect(result.file).to.include.keys('url', 'title', 'bytes', 'sha256', 'content_type');
    expect(told[0]).to.match(/^0 /);
    expect((await use(client, 'job', { job_id: job!.id })).told.file.sha256).to.equal(result.file.sha256);
  });

  it('key-deactivate: tells no result of a job once the key of its call is deactivated', async () => {
    const client = await connect();
    const running = use(client, 'download', { query: film });
    await until(async () => (await openJobs()).length === 1, 5, 'a job');
    await setKey(api.store, caller.account, `k${caller.keyId}`, { active: false });
    await endJob(api.store, (await openJobs())[0]!.id, completed);
    const { isError, told } = await running;
    expect([isError, told]).to.deep.equal([true, { error: 'Inactive API Key', error_code: 'inactive_api_key' }]);
  });

  it('gives up waiting when it is told to, and goes on with the job later', async () => {
    const client = await connect();
    const { told } = await use(client, 'download', { query: film, kind: 'audio', wait_seconds: 0 });
    expect([told.status, (await openJobs())[0]!.endpoint]).to.deep.equal(['QueuedJob', 'audio']);
    const waiting = use(client, 'job', { job_id: told.job_id });
    await endJob(api.store, told.job_id, failed);
    const { isError, told: ended } = await waiting;
    expect([isError, Object.keys(ended)]).to.deep.equal([true, ['error', 'error_code']]);
  });

  it('tells metadata and usage, and is charged once', async () => {
    const client = await connect();
    expect((await use(client, 'metadata', { query: film })).told.metadata.title).to.equal('A film');
    expect((await use(client, 'usage', {})).told).to.deep.include({ remaining: 99, total_used: 1, held: 0 });
    const linesOf = () => readLines(api.store, caller.account, 9);
    // The calls of the protocol itself, and the tool that is free, have lines of the route.
    const calls = await until(
      async () => {
        const seen = (await linesOf()).map(({ endpoint, credits }) => `${endpoint} ${credits}`);
        return seen.length >= 4 ? seen.sort() : null;
      },
      5,
      'four lines',
    );
    expect(calls).to.deep.equal(['POST /mcp 0', 'POST /mcp 0', 'POST /mcp 0', 'POST /v1/media/metadata 1']);
  });

  it('answers with the metadata itself although a tool is given parameters that change the form of the answer', async () => {
    const client = await connect();
    const forms = { is_async: true, fields: 'job_id', soft_fail: true };
    const { told } = await use(client, 'metadata', { query: film, ...forms });
    expect(told.metadata.title).to.equal('A film');
    expect(await openJobs()).to.deep.equal([]);
    const refused = await use(client, 'metadata', { query: 'ftp://x', ...forms, is_async: 'maybe' });
    expect(refused).to.deep.include({ isError: true });
    expect(refused.told.error).to.equal('Bad Request: query must be an http or https URL');
  });

  it('starts nothing for a kind or a wait that its schema does not allow', async () => {
    const client = await connect();
    const kinds = 'Bad Request: kind must be one of video, audio';
    const waits = 'Bad Request: wait_seconds must be a number from 0 to 3600';
    for (const [given, error] of [
      [{ kind: 'picture' }, kinds],
      [{ kind: null }, kinds],
      [{ wait_seconds: 'long' }, waits],
      [{ wait_seconds: -5 }, waits],
      [{ wait_seconds: 3601 }, waits],
    ] as const) {
      const { isError, told } = await use(client, 'download', { query: film, ...given });
      expect([isError, told]).to.deep.equal([true, { error, error_code: 'bad_request' }]);
    }
    const { told } = await use(client, 'job', { job_id: crypto.randomUUID(), wait_seconds: 'long' });
    expect(told).to.deep.equal({ error: waits, error_code: 'bad_request' });
    expect(await openJobs()).to.deep.equal([]);
  });

  it('starts no video for a parameter of sound, unless a video is what was asked for', async () => {
    const client = await connect();
    const sound = { audio_format: 'm4a', audio_quality: '128kbps' };
    for (const given of [sound, { audio_format: 'mp3' }]) {
      const { isError, told } = await use(client, 'download', { query: film, ...given });
      expect([isError, told]).to.deep.equal([
        true,
        { error: 'Bad Request: kind must be audio for audio_format', error_code: 'bad_request' },
      ]);
    }
    expect(await openJobs()).to.deep.equal([]);
    const picture = { video_quality: 'best', video_format: 'mp4' };
    for (const given of [
      { ...sound, kind: 'audio' },
      { ...sound, kind: 'video' },
      { ...sound, ...picture },
    ])
      expect((await use(client, 'download', { query: film, wait_seconds: 0, ...given })).isError).to.equal(false);
    const made = (await openJobs()).map(({ endpoint, args }) => `${endpoint} ${args.audio_format}`);
    expect(made.sort()).to.deep.equal(['audio m4a', 'video undefined', 'video undefined']);
  });

  it('tells which tools cost a credit: programs run the others without asking a person', async () => {
    const { tools } = await (await connect()).listTools();
    expect(tools.map(({ name, annotations }) => [name, annotations])).to.deep.equal([
      ['metadata', { readOnlyHint: false, destructiveHint: false, openWorldHint: true }],
      ['download', { readOnlyHint: false, destructiveHint: false, openWorldHint: true }],
      ['job', { readOnlyHint: true, openWorldHint: false }],
      ['usage', { readOnlyHint: true, openWorldHint: false }],
    ]);
    const costs = tools.map(({ description }) => /Costs one credit|Free\.$/.exec(description ?? '')?.[0]);
    expect(costs).to.deep.equal(['Costs one credit', 'Costs one credit', 'Free.', 'Free.']);
  });

  it('starts no second job and charges nothing more for a tool that is repeated with its key', async () => {
    const client = await connect();
    const download = (given: object) =>
      use(client, 'download', { query: film, wait_seconds: 0, idempotency_key: 'order 17', ...given });
    const { told: first } = await download({});
    expect((await download({})).told.job_id).to.equal(first.job_id);
    expect((await download({ video_quality: '360p' })).told.error_code).to.equal('idempotency_conflict');
    for (const idempotency_key of ['', ' x', 'x'.repeat(256), 17]) {
      expect((await download({ idempotency_key })).told).to.deep.equal({
        error: 'Bad Request: idempotency_key must be 1 to 255 visible characters, with spaces only between them',
        error_code: 'bad_request',
      });
    }
    expect(await openJobs()).to.have.length(1);
    const metadata = () => use(client, 'metadata', { query: film, idempotency_key: 'order 18' });
    expect((await metadata()).told).to.deep.equal((await metadata()).told);
    expect((await use(client, 'usage', {})).told).to.deep.include({ total_used: 1, held: 1 });
  });

  it('answers wrong parameters as a result of the tool, in the words of the API', async () => {
    const client = await connect();
    expect(await use(client, 'download', { query: film, video_quality: '8k' })).to.deep.equal({
      isError: true,
      told: {
        error: 'Bad Request: video_quality must be one of best, 1080p, 720p, 480p, 360p',
        error_code: 'bad_request',
      },
    });
    expect((await use(client, 'job', { job_id: 'x' })).told.error_code).to.equal('bad_request');
    const { code, message } = await client.callTool({ name: 'none' }).catch((error) => error);
    expect([code, message]).to.deep.equal([-32602, 'MCP error -32602: There is no tool none']);
    expect(await openJobs()).to.deep.equal([]);
  });

  it('refuses the key before anything else, and the protocol after it', async () => {
    const poor = await api.addCaller({ suspended: true });
    for (const body of [
      toolCall(),
      toolCall({}, 'none'),
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      '{',
      '[]',
      '{}',
    ]) {
      const wrong = await api.call('POST', '/mcp', { key: 'wrong', body, headers: { accept } });
      expectRefused(wrong, 401, 'invalid_api_key', 'Invalid API Key');
      const headers = { accept, 'content-type': 'application/json' };
      expectRefused(await api.call('POST', '/mcp', { key: poor.key, body, headers }), 403, 'forbidden', 'Forbidden');
    }
    for (const body of ['{', '[]', '{}', { jsonrpc: '2.0' }]) {
      expectRefused(await post(body, { 'content-type': 'application/json' }), 400, 'bad_request', /^Bad Request/);
    }
    expectRefused(await post(toolCall({}, 'usage'), { accept: 'text/html' }), 400, 'bad_request', /Accept/);
    expect((await post(toolCall({}, 'usage'), { accept: 'text/html, */*' })).text).to.contain('remaining');
    const odd = { ...toolCall(), params: { name: 'download', arguments: 'odd' } };
    expect((await post(odd)).text).to.match(/^event: message\ndata: .*"error":/);
    expect(await openJobs()).to.deep.equal([]);
  });

  it('counts the call of a tool once against the rate', async () => {
    const slow = await api.addCaller({ perMinute: 1 });
    const call = () => api.call('POST', '/mcp', { key: slow.key, body: toolCall({}, 'usage'), headers: { accept } });
    expect((await call()).text).to.contain('remaining');
    const refused = await call();
    expect([refused.status, refused.headers.get('x-error-code'), refused.headers.has('retry-after')]).to.deep.equal([
      429,
      'rate_limited',
      true,
    ]);
  });

  it('takes bodies of up to 64 KiB, no array, and no other method', async () => {
    const sized = (bytes: number) => JSON.stringify({ ...toolCall({}, 'usage'), id: 'x'.repeat(bytes - 90) });
    const headers = { 'content-type': 'application/json' };
    expect((await post(sized(64 * 1024 - 200), headers)).status).to.equal(200);
    expectRefused(await post(sized(64 * 1024 + 200), headers), 413, 'payload_too_large', 'Payload Too Large');
    expectRefused(await api.get('/mcp', caller.key), 405, 'method_not_allowed', 'Method Not Allowed');
    const heard = await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    expect([heard.status, heard.text]).to.deep.equal([202, '']);
  });
});

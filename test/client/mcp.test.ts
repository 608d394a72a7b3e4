import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.ts';
import { startCommand } from '../support/caller.ts';
import { film } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import type { Json } from '../support/json.ts';
import { completed } from '../support/record.ts';
import { aFolder } from '../support/redis.ts';
import { root } from '../support/tree.ts';

describe('trawl mcp', () => {
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

  it('serves the same tools on standard input and output, with progress and without its key', async () => {
    const { key } = await api.addCaller();
    const env = { PATH: process.env.PATH ?? '', HOME: folder, TRAWL_API_URL: api.url, TRAWL_API_KEY: key };
    const transport = new StdioClientTransport({ command: `${root}/trawl`, args: ['mcp'], env });
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(transport);
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

  it('ends with its input, and tells of a service that is not known', async () => {
    const known = startCommand(['mcp'], folder, { TRAWL_API_URL: api.url, TRAWL_API_KEY: 'k' });
    expect([await known.ended, known.out(), known.err()]).to.deep.equal([0, '', '']);
    const unknown = startCommand(['mcp'], folder, {});
    expect([await unknown.ended, unknown.out()]).to.deep.equal([2, '']);
    expect(unknown.err()).to.contain("run 'trawl login URL'");
  });
});

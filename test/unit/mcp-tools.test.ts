import { mock } from 'node:test';
import { expect } from 'chai';
import { type McpService, mcpTools } from '../../src/mcp/mcp-tools.ts';

const jobId = '0b6f2f5e-6f52-4d3a-9d6c-3a1f5f0c7e11';
const maxClientPatienceMs = 60_000;

describe('the tools of the Model Context Protocol', () => {
  afterEach(() => mock.timers.reset());

  for (const name of ['download', 'job'])
    it(`${name} tells more progress within every minute of an hour in which its job has none`, async () => {
      mock.timers.enable({ apis: ['setInterval'] });
      const { promise: waiting, resolve: startWaiting } = Promise.withResolvers<void>();
      const { promise: end, resolve: endWaiting } = Promise.withResolvers<void>();
      const service: McpService = {
        call: async () => ({ body: { job_id: jobId, id: jobId, status: 'QueuedJob', progress: 0 } }),
        follow: async (_jobId, _seconds, seen) => {
          seen({ status: 'QueuedJob', progress: 0 });
          startWaiting();
          await end;
          seen({ status: 'Running', stage: 'fetch', progress: 1 });
          return { body: { id: jobId, status: 'Running', progress: 1 } };
        },
      };
      const told: number[] = [];
      const report = (progress: number, words: string) => {
        told.push(progress);
        expect(words).to.equal(progress < 1 ? 'QueuedJob' : 'fetch');
      };
      const given = { query: 'https://example.com/film.mp4', job_id: jobId, wait_seconds: 3600 };
      const tool = mcpTools.find((one) => one.name === name)!;
      const running = tool.run(service, given, { report, signal: new AbortController().signal });
      await waiting;
      for (let minute = 0; minute < 60; minute++) {
        const before = told.length;
        mock.timers.tick(maxClientPatienceMs - 1);
        expect(told, `minute ${minute}`).to.have.length.above(before);
      }
      endWaiting();
      await running;
      expect(told.at(-1)).to.equal(1);
      expect(told).to.deep.equal([...new Set(told)].toSorted((a, b) => a - b));
      const { length } = told;
      mock.timers.tick(maxClientPatienceMs);
      expect(told, 'after the answer').to.have.length(length);
    });

  it('job names its own parameter in a refusal', async () => {
    const service: McpService = { call: () => expect.fail('called'), follow: () => expect.fail('followed') };
    const tool = mcpTools.find(({ name }) => name === 'job')!;
    const refusalOf = (given: object) =>
      tool.run(service, { ...given }, { report: () => {}, signal: new AbortController().signal });
    expect(await refusalOf({})).to.deep.equal({ error: 'Bad Request: job_id is required', error_code: 'bad_request' });
    const wrong = { error: 'Bad Request: job_id must be a UUID', error_code: 'bad_request' };
    expect(await refusalOf({ job_id: 'x' })).to.deep.equal(wrong);
    expect(await refusalOf({ job_id: 5 })).to.deep.equal(wrong);
  });
});

import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { clientNames } from '../support/client-driver.ts';
import { runAtStandIn } from '../support/stand-in-service.ts';

const page = '<html>\n\n<body>\n\nPlease sign in\n\n</body></html>\n\n';
const deleted = { id: '1', status: 'Error', endpoint: '/v1/video/download', error: 'Gone', error_code: 'deleted' };

describe('a client of callers behind a proxy', () => {
  for (const name of clientNames) {
    const runAt = runAtStandIn.bind(null, name);

    for (const [what, type, body] of [
      ['a page comes in place of events', 'text/html', page],
      ['events are no JSON', 'text/event-stream', 'id: 1\ndata: {"id":\n\n'],
    ] as const) {
      it(`asks for the job instead of its stream when ${what}, in ${name}`, async () => {
        let streams = 0;
        const outcome = await runAt(
          (path, response) => {
            if (!path.includes('/events')) return void response.end(JSON.stringify(deleted));
            streams += 1;
            // The error ends a client that would go on for ever.
            if (streams > 20) return void response.writeHead(400, { 'x-error-code': 'bad_request' }).end();
            response.writeHead(200, { 'content-type': type }).end(body);
          },
          { verb: 'wait', jobIds: ['1'] },
        );
        expect([outcome.error?.code, streams]).to.deep.equal(['deleted', 3]);
      });
    }

    it(`waits for a limit of the proxy itself, whose answer has no code, in ${name}`, async () => {
      const refused = new Set<string>();
      const answer = (path: string, response: ServerResponse) => {
        if (!refused.has(path)) {
          refused.add(path);
          return void response.writeHead(429, { 'content-type': 'text/html', 'retry-after': '0' }).end(page);
        }
        response.end(JSON.stringify({ ...deleted, job_id: '1' }));
      };
      expect(await runAt(answer, { verb: 'start' })).to.deep.equal({ value: { job_id: '1' } });
      const ended = await runAt(answer, { verb: 'wait', jobIds: ['1'] });
      expect(ended.error?.code).to.equal('deleted');
      const lasting = await runAt((_path, response) => void response.writeHead(429).end(page), { verb: 'start' }, 0.1);
      expect(lasting.error).to.include({ code: 'rate_limited', status: 429, retryable: true });
    });

    it(`waits until the date of a Retry-After, by the clock of its sender, in ${name}`, async () => {
      const day = 86_400_000;
      const at = (ms: number) => new Date(Math.ceil(Date.now() / 1000) * 1000 + ms).toUTCString();
      const asked: number[] = [];
      const outcome = await runAt((_path, response) => {
        asked.push(performance.now());
        if (asked.length > 1) return void response.end('{"job_id":"1"}');
        response.writeHead(503, { date: at(day), 'retry-after': at(day + 2_000) }).end(page);
      }, {});
      expect(outcome).to.deep.equal({ value: { job_id: '1' } });
      expect(asked[1]! - asked[0]!).to.be.at.least(1_990);
    });
  }
});

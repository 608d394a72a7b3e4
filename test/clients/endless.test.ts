import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { type ClientCommand, clientNames } from '../support/client-driver.ts';
import { runAtStandIn } from '../support/stand-in-service.ts';

const drop = 'x-drop: 1\r\n';
const maxSent = 64 * 2 ** 20;

/** Sends a drop twice a second until the connection closes. */
function drip(response: ServerResponse, send: () => void): void {
  const drops = setInterval(send, 500);
  response.once('close', () => clearInterval(drops));
}

function dripBody(response: ServerResponse): void {
  response.writeHead(200);
  drip(response, () => response.write(' '));
}

function dripHeaders(response: ServerResponse): void {
  const { socket } = response;
  socket?.write('HTTP/1.1 200 OK\r\n');
  drip(response, () => socket?.write(drop));
}

/** Answers the one job as completed, and its file by `answerFile`. */
function completedJob(answerFile: (response: ServerResponse) => void) {
  return (path: string, response: ServerResponse) => {
    if (path === '/file') return answerFile(response);
    const file = `http://${response.req.headers.host}/file`;
    const result = { response: file, bytes: 8, sha256: 'f', content_type: 'video/mp4' };
    response.end(
      JSON.stringify({ id: '1', job_id: '1', status: 'CompletedJob', endpoint: '/v1/video/download', result }),
    );
  };
}

describe('a client of callers whose answers do not end', () => {
  const download: Partial<ClientCommand> = { verb: 'download', parameters: { wait: 'poll' } };

  // At once, because a try of a call lasts 20 s and that of a file 60 s.
  const outcomes = new Map<string, ReturnType<typeof runAtStandIn>>();
  const drips = [
    ['an answer whose body drips', (_path: string, response: ServerResponse) => dripBody(response), {}],
    ['an answer whose headers drip', (_path: string, response: ServerResponse) => dripHeaders(response), {}],
    ['a file whose headers drip', completedJob(dripHeaders), download],
  ] as const;
  before(async () => {
    for (const [title, answer, command] of drips)
      for (const name of clientNames) outcomes.set(`${title} ${name}`, runAtStandIn(name, answer, command, 0.1));
    await Promise.allSettled(outcomes.values());
  });

  for (const [title] of drips) {
    for (const name of clientNames) {
      it(`gives up ${title}, in ${name}`, async () => {
        const { error } = (await outcomes.get(`${title} ${name}`)) ?? {};
        expect(error).to.include({ code: 'unreachable', retryable: true });
      });
    }
  }

  for (const name of clientNames) {
    it(`takes no file that is longer than its job says, in ${name}`, async () => {
      let sent = 0;
      const piece = Buffer.alloc(2 ** 16);
      const pour = completedJob((response) => {
        const more = () => {
          for (let isWritable = true; isWritable && sent < maxSent; sent += piece.length)
            isWritable = response.write(piece);
          if (sent >= maxSent) response.end();
        };
        response.on('drain', more);
        more();
      });
      const { error } = await runAtStandIn(name, pour, download);
      expect(error).to.include({ code: 'checksum_mismatch', retryable: true });
      expect(sent).to.be.below(maxSent);
    });
  }
});

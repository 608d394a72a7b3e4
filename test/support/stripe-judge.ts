import { spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { tool } from './tools.ts';

/** A request, and what Stripe's own stripe-mock says of it: 200, or 400 with the parameter that Stripe does not know. */
interface Verdict {
  readonly request: string;
  readonly status: number;
  readonly text: string;
}

export interface StripeJudge {
  readonly url: string;
  readonly verdicts: readonly Verdict[];
  stop(): Promise<void>;
}

/** Starts a server that lets stripe-mock judge each request by Stripe's OpenAPI document, and answers it as the stand-in does. */
export async function startStripeJudge(standIn: string): Promise<StripeJudge> {
  const mock = spawn(tool('stripe-mock'), ['-http-addr', '127.0.0.1:'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => mock.once('close', resolve));
  const judge = await new Promise<string>((resolve, reject) => {
    createInterface(mock.stdout).on('line', (line) => {
      const [, address] = /^Listening for HTTP at address: (\S+)$/.exec(line) ?? [];
      if (address !== undefined) resolve(`http://${address}`);
    });
    mock.once('close', () => reject(new Error('stripe-mock has ended')));
  });
  const verdicts: Verdict[] = [];

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = 'GET', url = '/' } = request;
    const body = method === 'GET' ? undefined : await buffer(request);
    const headers = Object.entries(request.headers).flatMap(([name, value]) =>
      ['connection', 'host', 'content-length'].includes(name) ? [] : [[name, String(value)] as [string, string]],
    );
    const ask = (place: string, sent: Buffer | undefined) =>
      fetch(place + url, { method, headers, ...(sent && { body: new Uint8Array(sent) }) });
    const judged = await ask(judge, body && leaveOutNewest(body));
    const path = url.split('?')[0]!.replace(/\/(pi|pm)_.*$/, '/ID');
    verdicts.push({ request: `${method} ${path}`, status: judged.status, text: await judged.text() });
    const answered = await ask(standIn, body);
    response.writeHead(answered.status, { 'content-type': 'application/json' }).end(await answered.text());
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    verdicts,
    async stop() {
      server.closeAllConnections();
      await new Promise((stopped) => server.close(stopped));
      mock.kill('SIGKILL');
      await ended;
    },
  };
}

/** The newest stripe-mock has the document of a version before this parameter; the stand-in judges it by the library. */
function leaveOutNewest(body: Buffer): Buffer {
  const form = new URLSearchParams(body.toString());
  form.delete('allowed_payment_method_types[0]');
  return Buffer.from(form.toString());
}

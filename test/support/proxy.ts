import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A forward proxy for tests. */
export interface TestProxy {
  readonly url: string;
  /** Hosts with ports that were asked for, in their order. */
  readonly asked: string[];
  readonly stop: () => Promise<void>;
}

/** Starts a forward proxy for http that refuses, as the egress role does, every address but the allowed ones. */
export async function startProxy(allowed: (host: string) => boolean): Promise<TestProxy> {
  const asked: string[] = [];
  const refuse = (answer: ServerResponse, status: number, verdict: string) =>
    answer.writeHead(status, { 'x-egress-verdict': verdict }).end();
  const server = createServer((asking, answer) => {
    const url = URL.parse(asking.url ?? '');
    asked.push(url?.host ?? '');
    if (url === null || !allowed(url.host)) return refuse(answer, 403, 'refused_address');
    const onward = request(url, { method: asking.method, headers: asking.headers, agent: false });
    onward.on('response', (came) => {
      answer.writeHead(came.statusCode ?? 502, came.headers).flushHeaders();
      came.pipe(answer);
      came.on('error', () => answer.destroy());
    });
    onward.on('error', () => (answer.headersSent ? answer.destroy() : refuse(answer, 502, 'failed_connect')));
    answer.on('close', () => onward.destroy());
    asking.pipe(onward);
  });
  server.on('connect', (_, socket) => socket.end('HTTP/1.1 403 refused_address\r\n\r\n'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${port}`, asked, stop };
}

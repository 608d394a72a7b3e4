import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** An answer on its way through a proxy that alters it. */
export interface PassingAnswer {
  readonly asked: string;
  status: number;
  headers: Record<string, string>;
  body: string;
}
export type Alter = (passing: PassingAnswer) => void;

/** Changes answers of this status to what is asked for under this target. */
export function alterIf(target: RegExp, status: number, change: (passing: PassingAnswer) => unknown): Alter {
  return (passing) => {
    if (target.test(passing.asked) && passing.status === status) change(passing);
  };
}

/** Changes the JSON of good answers. */
export function alterJson(target: RegExp, change: (body: Record<string, unknown>) => unknown): Alter {
  return (passing) => {
    if (!target.test(passing.asked) || passing.status >= 300) return;
    const body = JSON.parse(passing.body);
    change(body);
    passing.body = JSON.stringify(body);
  };
}

/** Does something with the URL of a proxy that alters the answers of a server, and takes the beginning off the path of each request. */
export async function withAlteringProxy<T>(
  origin: string,
  alter: Alter,
  work: (url: string) => Promise<T>,
  base = '',
): Promise<T> {
  const proxy = createServer((req, res) => {
    const headers = { ...req.headers };
    const asked = request(
      origin + req.url?.slice(base.length),
      { method: req.method, headers, agent: false },
      async (answer) => {
        const passing = {
          asked: req.url ?? '',
          status: answer.statusCode ?? 0,
          headers: { ...answer.headers } as Record<string, string>,
          body: await text(answer),
        };
        alter(passing);
        for (const name of ['content-length', 'connection', 'transfer-encoding']) delete passing.headers[name];
        res.writeHead(passing.status, passing.headers).end(passing.body);
      },
    );
    req.pipe(asked);
  });
  const url = await new Promise<string>((resolve) => {
    proxy.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`));
  });
  try {
    return await work(url + base);
  } finally {
    await close(proxy);
  }
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

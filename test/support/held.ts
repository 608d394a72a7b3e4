import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A source whose film is not there, and which says so only when it may; it takes webhooks too. */
export interface Held {
  readonly url: string;
  /** How often something below /held was asked for. */
  readonly asked: () => number;
  /** Lets it answer. */
  readonly go: () => void;
  /** Headers of what was posted, and of what was asked for. */
  readonly posts: readonly IncomingHttpHeaders[];
  readonly gets: readonly IncomingHttpHeaders[];
  readonly stop: () => Promise<void>;
}

export async function startHeld(): Promise<Held> {
  const may = Promise.withResolvers<void>();
  let asked = 0;
  const posts: IncomingHttpHeaders[] = [];
  const gets: IncomingHttpHeaders[] = [];
  const server = createServer(async (req, res) => {
    req.resume();
    (req.method === 'POST' ? posts : gets).push(req.headers);
    if (req.url?.startsWith('/held')) {
      asked += 1;
      await may.promise;
    }
    res.writeHead(req.method === 'POST' ? 200 : 404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: () => asked,
    go: may.resolve,
    posts,
    gets,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

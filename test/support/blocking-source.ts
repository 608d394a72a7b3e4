import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A source that answers 404 below /held only after `release`; it receives webhooks too. */
export interface BlockingSource {
  readonly url: string;
  /** Number of requests below /held. */
  readonly asked: () => number;
  /** Lets it answer below /held. */
  readonly release: () => void;
  /** Headers of what was posted, and of what was asked for. */
  readonly posts: readonly IncomingHttpHeaders[];
  readonly gets: readonly IncomingHttpHeaders[];
  readonly stop: () => Promise<void>;
}

export async function startBlockingSource(): Promise<BlockingSource> {
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
    release: may.resolve,
    posts,
    gets,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

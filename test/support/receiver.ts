import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Json } from './json.ts';

export interface Posted {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Json;
}

/** A receiver of webhooks on loopback. */
export interface Receiver {
  readonly url: string;
  readonly posted: Posted[];
  /** Deliveries for one job. */
  of(job: string): Posted[];
  stop(): Promise<void>;
}

/** Starts a receiver that answers 200, or as it is told. */
export async function startReceiver(
  answer: (req: IncomingMessage, res: ServerResponse) => void = (_, res) => res.end(),
): Promise<Receiver> {
  const posted: Posted[] = [];
  const server = createServer(async (req, res) => {
    const at = Date.now();
    const text = Buffer.concat(await req.toArray().catch(() => [])).toString();
    // A body that was cut off is no delivery.
    if (req.complete) posted.push({ at, path: req.url ?? '', headers: req.headers, body: JSON.parse(text || 'null') });
    answer(req, res);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    posted,
    of: (job) => posted.filter(({ body }) => body?.id === job),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

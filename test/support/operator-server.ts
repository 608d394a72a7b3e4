import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Commands that a procedure runs, such as STOP_TRAWL, carried out by the test. */
export interface OperatorServer {
  /** A command line for each name; it fails when its work does. */
  readonly commands: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Serves these works on loopback: the command of each asks for it by curl and waits for its end. */
export async function startOperatorServer(
  works: Readonly<Record<string, () => Promise<unknown>>>,
): Promise<OperatorServer> {
  const server = createServer((req, res) => {
    const work = works[req.url?.slice(1) ?? ''];
    Promise.resolve(work?.()).then(
      () => res.writeHead(work ? 200 : 404).end(),
      (error: Error) => res.writeHead(500).end(`${error.stack}\n`),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const line = (name: string) =>
    `curl --fail-with-body --silent --show-error --noproxy '*' http://127.0.0.1:${port}/${name}`;
  return {
    commands: Object.fromEntries(Object.keys(works).map((name) => [name, line(name)])),
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

import { randomInt } from 'node:crypto';
import { type AddressInfo, createServer } from 'node:net';

/** A port that was free a moment ago. */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  return (await listen(0, address)) ?? 0;
}

/** A port that was free a moment ago, and that no outgoing connection takes: for a server that is started again on it. */
export async function quietPort(address = '127.0.0.1'): Promise<number> {
  for (;;) {
    const port = await listen(randomInt(20_000, 32_000), address);
    if (port !== null) return port;
  }
}

/** Listens there for a moment; `null` when somebody else does. */
async function listen(port: number, address: string): Promise<number | null> {
  const server = createServer();
  const taken = await new Promise<boolean>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(true) : reject(error),
    );
    server.listen(port, address, () => resolve(false));
  });
  if (taken) return null;
  const { port: found } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return found;
}

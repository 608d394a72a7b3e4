import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the ports that the system gives to outgoing connections, and to servers that name none. */
const [firstPort, lastPort] = [11_000, 30_000];
let next = randomInt(firstPort, lastPort);

/** A port that was free a moment ago. This process is given it once, and no connection of another one takes it meanwhile. */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  for (;;) {
    const port = next;
    next = port === lastPort ? firstPort : port + 1;
    if (await isFree(port, address)) return port;
  }
}

export async function freePorts(count: number, address = '127.0.0.1'): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort(address));
  return ports;
}

/** Listens there for a moment. */
async function isFree(port: number, address: string): Promise<boolean> {
  const server = createServer();
  const taken = await new Promise<boolean>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(true) : reject(error),
    );
    server.listen(port, address, () => resolve(false));
  });
  if (!taken) await new Promise((resolve) => server.close(resolve));
  return !taken;
}

import { randomInt } from 'node:crypto';
import { createServer, type ListenOptions } from 'node:net';

/** Below the ports that the system gives to outgoing connections, and to servers that name none. */
const [firstPort, blockSize, blockCount] = [11_000, 100, 190];
const ports: number[] = [];

/**
 * A port that was free a moment ago. This process is given it once, no connection of another one takes it meanwhile, and no other
 * process of the tests is given it or tries it: until this one ends, it holds the block.
 */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  for (;;) {
    const port = ports.shift();
    if (port === undefined) ports.push(...(await takeBlock()));
    else if (await isFree(port, address)) return port;
  }
}

export async function freePorts(count: number, address = '127.0.0.1'): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort(address));
  return ports;
}

/** Takes a block that no process holds: the holder listens at a name that the kernel keeps per network, and forgets with the process. */
async function takeBlock(): Promise<number[]> {
  const first = randomInt(blockCount);
  for (let tried = 0; tried < blockCount; tried++) {
    const block = (first + tried) % blockCount;
    const holder = await listenUnlessTaken({ path: `\0trawl-test-ports-${block}` });
    if (holder === null) continue;
    holder.unref();
    return Array.from({ length: blockSize }, (_, n) => firstPort + block * blockSize + n);
  }
  throw new Error('Other tests hold every block of ports');
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = await listenUnlessTaken({ port, host });
  if (server !== null) await new Promise((resolve) => server.close(resolve));
  return server !== null;
}

function listenUnlessTaken(at: ListenOptions) {
  const server = createServer();
  return new Promise<typeof server | null>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(null) : reject(error),
    );
    server.listen(at, () => resolve(server));
  });
}

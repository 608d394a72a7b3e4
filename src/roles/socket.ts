import { chmod, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createConnection } from 'node:net';
import type { ServerAddress } from '../base/server-address.ts';

const answerMs = 2_000;

/** Listens on a UNIX socket that only this user reaches, in place of what an earlier process left; answers how to end it. */
export async function listenAt(server: Server, path: string): Promise<() => Promise<void>> {
  await rm(path, { force: true });
  const close = await listen(server, (ready) => server.listen(path, ready));
  await chmod(path, 0o600);
  return close;
}

/** Listens on a port; answers how to end it. */
export function listenOn(server: Server, host: string, port: number): Promise<() => Promise<void>> {
  return listen(server, (ready) => server.listen(port, host, ready));
}

async function listen(server: Server, begin: (ready: () => void) => void): Promise<() => Promise<void>> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    begin(resolve);
  });
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
}

/** Tells whether somebody listens at an address. */
export function isListening(address: ServerAddress): Promise<boolean> {
  return new Promise((resolve) => {
    const wire = createConnection({ ...address, timeout: answerMs });
    const settle = (listens: boolean) => {
      wire.destroy();
      resolve(listens);
    };
    wire.once('connect', () => settle(true));
    wire.once('timeout', () => settle(false));
    wire.on('error', () => settle(false));
  });
}

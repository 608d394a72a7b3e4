import { chmod, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createConnection } from 'node:net';
import { closeServer } from '../base/close-server.ts';
import { listenAt, type ServerAddress } from '../base/server-address.ts';

const answerMs = 2_000;

/** Listens; a UNIX socket replaces one that an earlier process left, and only this user may connect to it. Returns how to end it. */
export async function openListener(server: Server, address: ServerAddress): Promise<() => Promise<void>> {
  if ('path' in address) await rm(address.path, { force: true });
  await listenAt(server, address);
  if ('path' in address) await chmod(address.path, 0o600);
  return () => closeServer(server);
}

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

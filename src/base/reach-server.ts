import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { codeOf } from './errors.ts';
import { type ServerAddress, trustOf, usesTls } from './server-address.ts';

const answerMs = 2_000;
/** Code of the system, too, for packets that nobody answers. */
const silent = 'ETIMEDOUT';

export async function isListening(address: ServerAddress): Promise<boolean> {
  return (await findListenError(address)) === null;
}

/** Connects, with TLS where the address says so, and returns why that does not work; `null` when it does. */
export async function findListenError(address: ServerAddress): Promise<Error | null> {
  const options = { ...address, timeout: answerMs };
  try {
    const wire = usesTls(address) ? connectTls({ ...options, ...trustOf(address) }) : createConnection(options);
    // An error after the connection says nothing more.
    wire.on('error', () => {});
    wire.once('timeout', () => wire.destroy(silenceOf(wire)));
    await once(wire, usesTls(address) ? 'secureConnect' : 'connect');
    wire.destroy();
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Returns true when nothing answered at all, as behind a network policy that drops packets: no refusal, and no TLS that fails. */
export function isSilent(error: Error): boolean {
  return codeOf(error) === silent;
}

function silenceOf(wire: Socket): Error {
  const error = new Error(`nothing is heard for ${answerMs / 1000} s`);
  // A connection whose TLS is late has reached the server.
  return wire.connecting ? Object.assign(error, { code: silent }) : error;
}

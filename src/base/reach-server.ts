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
  try {
    await connectOnce(address);
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

function connectOnce(address: ServerAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { ...address, timeout: answerMs };
    const wire = usesTls(address) ? connectTls({ ...options, ...trustOf(address) }) : createConnection(options);
    const settle = (error: Error | null) => {
      wire.destroy();
      if (error) reject(error);
      else resolve();
    };
    wire.once(usesTls(address) ? 'secureConnect' : 'connect', () => settle(null));
    wire.once('timeout', () => settle(silenceOf(wire)));
    wire.on('error', settle);
  });
}

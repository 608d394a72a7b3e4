import { keys } from '../keys.ts';
import type { Connection } from '../redis/connection.ts';
import type { RecordStore } from '../script.ts';

const strayProxySeconds = 30 * 86_400;

/** Notes a private address that forwards requests of others without being trusted, for the operator's `doctor`. */
export async function noteStrayProxy({ connection }: RecordStore, address: string): Promise<void> {
  await connection.send(['SET', keys.strayProxy, address, 'EX', String(strayProxySeconds)]);
}

/** The last such address; `null` when none was seen for a month. */
export async function readStrayProxy(connection: Connection): Promise<string | null> {
  const address = await connection.read(['GET', keys.strayProxy]);
  return address === null ? null : String(address);
}

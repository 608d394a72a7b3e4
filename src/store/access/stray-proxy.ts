import { keys } from '../keys.ts';
import type { Connection } from '../redis/connection.ts';
import type { RecordStore } from '../script.ts';

const strayProxySeconds = 30 * 86_400;

/** Notes a private address that forwards requests without being a trusted proxy, for `trawl doctor`. */
export async function noteStrayProxy({ connection }: RecordStore, address: string): Promise<void> {
  await connection.send(['SET', keys.strayProxy, address, 'EX', String(strayProxySeconds)]);
}

/** Returns the last such address, or `null` when none was seen for 30 days. */
export function readStrayProxy(connection: Connection): Promise<string | null> {
  return connection.read(['GET', keys.strayProxy]);
}

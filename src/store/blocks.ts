import { channels, keys } from './keys.ts';
import type { Connection } from './redis/connection.ts';
import { run, type Store } from './script.ts';
import { clearBlock as clearBlockScript } from './scripts/clear-block.ts';
import { failAuth as failAuthScript } from './scripts/fail-auth.ts';

const strayProxySeconds = 30 * 86_400;

/** When an address is blocked (D38): so many failures in a window; milliseconds. */
export interface BlockRule {
  readonly most: number;
  readonly windowMilliseconds: number;
  readonly blockMilliseconds: number;
}

/** Counts a failed authentication; answers until when the address is blocked by it, or `null`. */
export async function countFailure(store: Store, address: string, rule: BlockRule): Promise<number | null> {
  const reply = await run(
    store,
    failAuthScript,
    { failures: keys.failures(address), blocks: keys.blocks },
    {
      address,
      most: rule.most,
      window: rule.windowMilliseconds,
      block: rule.blockMilliseconds,
      blocksChannel: channels.blocks,
    },
  );
  return reply[0] === 'blocked' ? Number(reply[1]) : null;
}

/** Notes a private address that forwards requests of others without being trusted, for the operator's `doctor`. */
export async function noteStrayProxy({ connection }: Store, address: string): Promise<void> {
  await connection.read(['SET', keys.strayProxy, address, 'EX', String(strayProxySeconds)], keys.strayProxy);
}

/** The last such address; `null` when none was seen for a month. */
export async function readStrayProxy(connection: Connection): Promise<string | null> {
  const address = await connection.read(['GET', keys.strayProxy], keys.strayProxy);
  return address === null ? null : String(address);
}

/** Addresses that are blocked now, and until when. */
export async function listBlocks(store: Store): Promise<{ address: string; until: number }[]> {
  const flat = (await store.connection.read(
    ['ZRANGEBYSCORE', keys.blocks, `(${store.clock.now()}`, '+inf', 'WITHSCORES'],
    keys.blocks,
  )) as string[];
  const found: { address: string; until: number }[] = [];
  for (let n = 0; n + 1 < flat.length; n += 2) found.push({ address: String(flat[n]), until: Number(flat[n + 1]) });
  return found;
}

/** Ends a block and forgets the failures; false when there was nothing. */
export async function clearBlock(store: Store, address: string): Promise<boolean> {
  const [word] = await run(
    store,
    clearBlockScript,
    { failures: keys.failures(address), blocks: keys.blocks },
    { address, blocksChannel: channels.blocks },
  );
  return word === 'cleared';
}

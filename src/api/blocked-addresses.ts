import type { Log } from '../base/log.ts';
import { type BlockRule, countFailure } from '../store/access/count-auth-failure.ts';
import { listBlocks } from '../store/access/list-blocks.ts';
import { channels } from '../store/keys.ts';
import type { RecordStore } from '../store/script.ts';

/** The blocked addresses, mirrored in memory: asking costs nothing. */
export interface Blocked {
  /** Seconds until the block of an address ends; `null` when it is not blocked. */
  waitSeconds(address: string): number | null;
  /** Counts a failed authentication, in the record, for all replicas. */
  fail(address: string): Promise<void>;
  close(): Promise<void>;
}

const refreshMilliseconds = 10_000;

/** Mirrors the blocks: at once on a hint, and every 10 s in case one was lost. */
export async function mirrorBlocks(store: RecordStore, rule: BlockRule, log: Log): Promise<Blocked> {
  let until = new Map<string, number>();
  const refresh = async () => {
    try {
      until = new Map((await listBlocks(store)).map((block) => [block.address, block.until]));
    } catch (error) {
      log.debug('the blocked addresses could not be read', { error });
    }
  };
  await refresh();
  const unsubscribe = await store.connection.subscribe(channels.blocks, () => void refresh());
  const timer = setInterval(() => void refresh(), refreshMilliseconds);
  timer.unref();
  return {
    waitSeconds(address) {
      const end = until.get(address);
      const left = end === undefined ? 0 : end - store.clock.now();
      return left > 0 ? Math.ceil(left / 1000) : null;
    },
    async fail(address) {
      const end = await countFailure(store, address, rule);
      if (end !== null) until.set(address, end);
    },
    async close() {
      clearInterval(timer);
      await unsubscribe();
    },
  };
}

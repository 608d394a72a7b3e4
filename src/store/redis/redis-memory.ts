import type { Connection } from './connection.ts';
import { readSection } from './durability.ts';

export interface RecordMemory {
  readonly usedBytes: number;
  /** Limit that the gate goes by; `null` where Redis hides its memory. */
  readonly limitBytes: number | null;
  /** True when Redis itself keeps the limit (`maxmemory`); otherwise only the kernel stops it. */
  readonly isOwnLimit: boolean;
}

/** Share of what the machine of a Redis without a limit has: the rest is for its fork, its buffers and others. */
const assumedShare = 0.75;
/** Share of Redis memory from which on no new job is admitted, so that settle, cancel and release still have room. */
export const fullRatio = 0.85;

/** Reads the memory of Redis. `assumedBytes` (TRAWL_REDIS_MEMORY) is the limit of a Redis that has none of its own. */
export async function readMemory(connection: Connection, assumedBytes: number | null): Promise<RecordMemory> {
  const memory = await readSection((command) => connection.send(command), 'memory');
  if (memory === undefined) return { usedBytes: 0, limitBytes: null, isOwnLimit: false };
  const own = Number(memory.get('maxmemory') ?? 0);
  const seen = Math.floor(Number(memory.get('total_system_memory') ?? 0) * assumedShare);
  const limitBytes = own || assumedBytes || seen || null;
  return { usedBytes: Number(memory.get('used_memory') ?? 0), limitBytes, isOwnLimit: own > 0 };
}

/** Returns the used share of the limit, from 0 to about 1; 0 where it is hidden. */
export function memoryRatio({ usedBytes, limitBytes }: RecordMemory): number {
  return limitBytes === null ? 0 : usedBytes / limitBytes;
}

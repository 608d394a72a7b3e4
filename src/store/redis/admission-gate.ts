import type { Config } from '../../base/config.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Connection } from './connection.ts';
import { weaknesses } from './durability.ts';
import { fullRatio, memoryRatio, readMemory } from './redis-memory.ts';

/** Decides whether anything new is admitted. What was admitted still ends. */
export type AdmissionGate = Readonly<Awaited<ReturnType<typeof watchAdmissions>>>;

const intervalMs = 1_000;

/**
 * Closes admissions while Redis is nearly full, as it is read every second, and with `strict` while the Redis in use, perhaps
 * another one than at the start, may lose what it has acknowledged. While Redis does not answer, its memory counts as it was.
 */
export async function watchAdmissions(
  connection: Connection,
  { redisMemory, durability: mode }: Pick<Config, 'redisMemory' | 'durability'>,
  metrics: Metrics,
  log: Log,
) {
  let isFull = false;
  let seen = '';
  const judge = () => {
    const findings = mode === 'strict' ? connection.durability().weaknesses : [];
    gate.isOpen = !isFull && findings.length === 0;
    const reasons = new Set<string>([...findings.map(({ reason }) => reason), ...(isFull ? ['memory'] : [])]);
    for (const reason of ['memory', ...weaknesses]) {
      metrics.admissions_closed.set({ reason }, reasons.has(reason) ? 1 : 0);
    }
    const texts = findings.map(({ text }) => text);
    if (texts.join() === seen) return;
    seen = texts.join();
    if (seen === '') log.info('redis keeps every change again: new jobs and calls are admitted');
    else log.error('redis may lose charges: nothing more is admitted', { findings: texts });
  };
  const look = async () => {
    try {
      const memory = await readMemory(connection, redisMemory);
      const ratio = memoryRatio(memory);
      metrics.redis_memory_unlimited.set(memory.isOwnLimit ? 0 : 1);
      metrics.redis_memory_ratio.set(ratio);
      const wasFull = isFull;
      isFull = ratio >= fullRatio;
      if (isFull && !wasFull) log.error('the memory of redis is nearly full: nothing more is admitted');
      if (wasFull && !isFull) log.info('the memory of redis has room again');
    } catch (error) {
      log.debug('the memory of redis could not be read', { error });
    }
    judge();
  };
  const timer = setInterval(() => void look(), intervalMs).unref();
  const endWatch = connection.watchDurability(judge);
  const close = () => {
    clearInterval(timer);
    endWatch();
  };
  const gate = {
    /** False while Redis is nearly full, or may lose what it has acknowledged. */
    isOpen: true,
    close,
  };
  await look();
  return gate;
}

import type { Config } from '../../base/config.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Connection } from './connection.ts';
import { type Durability, weaknesses } from './durability.ts';
import type { MemoryGate } from './memory-gate.ts';

/** Decides whether anything new is admitted. What was admitted still ends. */
export interface AdmissionGate {
  readonly isOpen: () => boolean;
  readonly close: () => void;
}

const everyMs = 1_000;

/**
 * Closes admissions while Redis is nearly full, and with `strict` while the Redis in use, perhaps another one than at the
 * start, may lose what it has acknowledged.
 */
export function watchAdmissions(
  connection: Pick<Connection, 'durability'>,
  memory: Pick<MemoryGate, 'isOpen'>,
  mode: Config['durability'],
  metrics: Pick<Metrics, 'admissions_closed' | 'refreshers'>,
  log: Log,
): AdmissionGate {
  const found = (): Durability['weaknesses'] => (mode === 'strict' ? connection.durability().weaknesses : []);
  const isOpen = () => memory.isOpen && found().length === 0;
  const refresh = async () => {
    const reasons = new Set<string>(found().map(({ reason }) => reason));
    if (!memory.isOpen) reasons.add('memory');
    for (const reason of ['memory', ...weaknesses]) {
      metrics.admissions_closed.set({ reason }, reasons.has(reason) ? 1 : 0);
    }
  };
  metrics.refreshers.add(refresh);
  let seen = '';
  const timer = setInterval(() => {
    const findings = found().map(({ text }) => text);
    const present = findings.join('; ');
    if (present === seen) return;
    seen = present;
    if (present === '') log.info('redis keeps every change again: new jobs and calls are admitted');
    else log.error('redis may lose charges: nothing more is admitted', { findings });
  }, everyMs).unref();
  return {
    isOpen,
    close: () => {
      clearInterval(timer);
      metrics.refreshers.delete(refresh);
    },
  };
}

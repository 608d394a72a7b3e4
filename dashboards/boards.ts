import { money } from './money.ts';
import type { Board } from './panels.ts';
import { record } from './record.ts';
import { service } from './service.ts';
import { sources } from './sources.ts';
import { workers } from './workers.ts';

/** Every dashboard, in the order of their links. */
export const boards: readonly Board[] = [service, money, workers, sources, record];

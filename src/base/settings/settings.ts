import { apiSettings } from './api-settings.ts';
import { dashboardSettings } from './dashboard-settings.ts';
import { egressSettings } from './egress-settings.ts';
import { limitSettings } from './limit-settings.ts';
import { objectSettings } from './object-settings.ts';
import { recordSettings } from './record-settings.ts';
import { serviceSettings } from './service-settings.ts';
import type { Setting } from './setting.ts';
import { workerJobSettings } from './worker-job-settings.ts';
import { workerSettings } from './worker-settings.ts';

/** Every setting, in the order of docs/config.md; nothing else reads the environment. */
export const settings = [
  ...serviceSettings,
  ...apiSettings,
  ...recordSettings,
  ...objectSettings,
  ...workerSettings,
  ...workerJobSettings,
  ...egressSettings,
  ...limitSettings,
  ...dashboardSettings,
] as const satisfies readonly Setting[];

import { callerSettings } from './caller-settings.ts';
import { dashboardSettings } from './dashboard-settings.ts';
import { egressSettings } from './egress-settings.ts';
import type { Setting, SettingTable } from './kinds.ts';
import { limitSettings } from './limit-settings.ts';
import { serviceSettings } from './service-settings.ts';
import { storageSettings } from './storage-settings.ts';
import { workerJobSettings } from './worker-job-settings.ts';
import { workerSettings } from './worker-settings.ts';

const table = {
  ...serviceSettings,
  ...storageSettings,
  ...workerSettings,
  ...workerJobSettings,
  ...egressSettings,
  ...limitSettings,
  ...dashboardSettings,
  ...callerSettings,
} as const satisfies SettingTable;

export type KnownSettings = typeof table;
export type SettingName = keyof KnownSettings;

/** Every setting, in the order of docs/config.md; nothing else reads the environment. */
export const settings = Object.entries(table).map(([name, row]) => ({ name, ...row })) as readonly (Setting & {
  readonly name: SettingName;
})[];

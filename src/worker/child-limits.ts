import type { FailureCode } from '../base/errors.ts';

/** Limits of all children of one attempt together; `processes` counts threads where the system counts them. */
export interface ChildLimits {
  readonly fileBytes: number;
  /** Of the whole folder: parts, the joined file and its conversion lie there at the same time. */
  readonly folderBytes: number;
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
  readonly processes: number;
}

export const breaches = {
  folder: 'file_too_large',
  // A page or a file that unpacks without end is its source's doing.
  memory: 'file_damaged',
  cpu: 'file_damaged',
  processes: 'worker_failed',
  time: 'timeout',
} as const satisfies Record<string, FailureCode>;

export type Breach = keyof typeof breaches;

const maxOpenFiles = 1024;

/**
 * Returns the command under limits that the kernel enforces on each process. The memory limit counts data only, because
 * programs with a heap of their own reserve far more addresses than they use.
 */
export function limitCommand(command: readonly string[], limits: ChildLimits, countsProcesses: boolean): string[] {
  return [
    'prlimit',
    '--core=0',
    `--nofile=${maxOpenFiles}`,
    `--fsize=${limits.fileBytes}`,
    `--data=${limits.memoryBytes}`,
    `--cpu=${limits.cpuSeconds}`,
    ...(countsProcesses ? [`--nproc=${limits.processes}`] : []),
    '--',
    ...command,
  ];
}

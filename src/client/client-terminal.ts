/** Output and environment of a command of callers. */
export interface ClientTerminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** True when standard error is a terminal. */
  readonly isWatched: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Exit codes that scripts rely on. */
export const exitCodes = { done: 0, failed: 1, usage: 2, noService: 3, interrupted: 130 } as const;

/** A command line that is wrong. */
export class ClientUsageError extends Error {}

/** Replaces control characters: nothing that a service answers may control the terminal. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?');
}

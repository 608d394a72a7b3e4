/** Output and environment of a command. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** True when standard error is a terminal. */
  readonly isWatched: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Replaces control characters: nothing that others have written may control a terminal. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?');
}

import type { SettingKind } from './kinds.ts';

/** One setting, an environment variable. It is read as its default when it is not set or empty. */
export interface Setting {
  readonly name: `TRAWL_${string}`;
  readonly kind: SettingKind<unknown>;
  /** As one would write it; `null` when there is no value without the setting. */
  readonly default: string | null;
  /** Default in words, where `default` does not say it. */
  readonly absent?: string;
  /** The value may come from the file that NAME_FILE names, and is never shown. */
  readonly secret?: true;
  /** Meaning for the operator: the thing that the value limits, its unit, and the consequence at the limit. */
  readonly text: string;
}

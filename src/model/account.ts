import { writeTime } from './timestamp.ts';

export interface Plan {
  readonly name: string;
  readonly quota: number;
  /** `null` without a limit, as the next one. */
  readonly per_second: number | null;
  readonly per_minute: number | null;
  readonly paid: boolean;
}

export interface Account {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  readonly plan: string | null;
  readonly stats: boolean;
  readonly invoice: 'paid' | 'unpaid';
  readonly suspended: boolean;
  readonly concurrency: number | null;
  readonly weight: number;
  readonly max_open: number;
  /** Mails to the owners when 50, 80, 90 and 100 % of the balance are used. */
  readonly alerts: boolean;
  readonly created_at: number;
}

export const quotaWindows = ['total', 'monthly', 'weekly', 'daily'] as const;
export type QuotaWindow = (typeof quotaWindows)[number];
export type Quotas = Readonly<Record<QuotaWindow, number | null>>;

/** An API key as the record keeps it: its secret is only there as a hash. Times are milliseconds. */
export interface Key {
  readonly id: string;
  readonly account: string;
  readonly alias: string;
  readonly category: string;
  readonly active: boolean;
  readonly expires: number | null;
  readonly quotas: Quotas;
  readonly created_at: number;
  readonly last_used_at: number | null;
}

export function keyJson({ account: _, ...key }: Key) {
  const times = { created_at: writeTime(key.created_at), last_used_at: writeTime(key.last_used_at) };
  return { ...key, expires: writeTime(key.expires), ...times };
}

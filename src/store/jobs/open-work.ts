import { keys } from '../keys.ts';
import type { RecordStore } from '../script.ts';

/** Ids of the jobs of an account that have not ended, oldest first. */
export async function listOpen(store: RecordStore, account: string): Promise<string[]> {
  return (await store.connection.read(['ZRANGE', keys.open(account), '0', '-1'])) as string[];
}

export async function listActive(store: RecordStore): Promise<string[]> {
  return (await store.connection.read(['ZRANGE', keys.active, '0', '-1'])) as string[];
}

/** Returns jobs that wait since before a moment, up to 100 of each account. */
export async function listOverdue(store: RecordStore, before: number): Promise<string[]> {
  const accounts = (await store.connection.read(['HVALS', keys.slugs])) as string[];
  const found = await store.connection.readAll(
    accounts.map((account) => {
      const key = keys.queue(account);
      return ['ZRANGEBYSCORE', key, '-inf', String(before), 'LIMIT', '0', '100'];
    }),
  );
  return found.flat() as string[];
}

/** Open work of the whole record; times are milliseconds, `null` when there is none. */
export interface Openings {
  readonly queued: number;
  readonly active: number;
  readonly held: number;
  readonly oldestQueued: number | null;
  readonly webhooks: number;
  readonly oldestWebhook: number | null;
  readonly blocked: number;
}

export async function readOpenings(store: RecordStore): Promise<Openings> {
  const accounts = (await store.connection.read(['HVALS', keys.slugs])) as string[];
  const now = String(store.clock.now());
  const each = await store.connection.readAll(
    accounts.flatMap((account) => {
      const [queue, hash] = [keys.queue(account), keys.account(account)];
      return [
        ['ZCARD', queue],
        ['ZRANGE', queue, '0', '0', 'WITHSCORES'],
        ['HGET', hash, 'held'],
      ];
    }),
  );
  const [active, webhooks, first, blocked] = await store.connection.readAll([
    ['ZCARD', keys.active],
    ['ZCARD', keys.webhooks],
    ['ZRANGE', keys.webhooks, '0', '0', 'WITHSCORES'],
    ['ZCOUNT', keys.blocks, `(${now}`, '+inf'],
  ]);
  const scores = each.filter((_, n) => n % 3 === 1).map((reply) => scoreOf(reply));
  return {
    queued: sum(each.filter((_, n) => n % 3 === 0)),
    active: Number(active),
    held: sum(each.filter((_, n) => n % 3 === 2)),
    oldestQueued: scores.reduce((least, one) => (least === null || (one !== null && one < least) ? one : least), null),
    webhooks: Number(webhooks),
    oldestWebhook: scoreOf(first),
    blocked: Number(blocked),
  };
}

function sum(replies: readonly unknown[]): number {
  return replies.reduce<number>((total, one) => total + Number(one), 0);
}

function scoreOf(reply: unknown): number | null {
  const [, score] = reply as (string | undefined)[];
  return score === undefined ? null : Number(score);
}

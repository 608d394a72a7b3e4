import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import type { ReadArchivedPart } from '../../src/store/log/archived-parts.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import { rollPeriod } from '../../src/store/money/roll-period.ts';
import { freeLine } from './free-line.ts';
import { anAccount, aRunningJob, completed, holder, type TestStore } from './record.ts';
import { aLog } from './redis.ts';

export type OldAccount = Awaited<ReturnType<typeof anAccount>>;

const day = 86_400_000;
/** Number of free lines of yesterday: more than one object holds. */
export const freeLines = 2300;

/** Paths of the finished objects in the folder of a store. */
export function objectsIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (path) => !path.startsWith('.uploads') && statSync(join(folder, path)).isFile(),
  );
}

/** An account with three months behind it, and lines of yesterday. */
export async function anOldAccount(store: TestStore): Promise<OldAccount> {
  const caller = await anAccount(store, { quota: 2, credits: 50, packs: [2] });
  const lines = openRequestLog(store, 50_000, aLog().log);
  const began = store.clock.now();
  for (let n = 0; n < freeLines; n++) lines.add(caller, { ...freeLine, at: began + n, duration_ms: n });
  for (let month = 0; month < 3; month++) {
    for (let n = 0; n < 4; n++) await settleJob(store, holder, await aRunningJob(store, caller), completed);
    store.advance(31 * day);
    await rollPeriod(store, caller.accountId);
  }
  await settleJob(store, holder, await aRunningJob(store, caller), completed);
  lines.add(caller, { ...freeLine, at: store.clock.now(), duration_ms: freeLines });
  await lines.close();
  return caller;
}

/** The ledger and the request log of an account, with what was moved. */
export async function allOf(store: TestStore, { accountId }: OldAccount, open: ReadArchivedPart) {
  return {
    ledger: await readLedger(store, accountId, 100_000, open),
    lines: (await readLines(store, accountId, 100_000, { open })).map((line) => JSON.stringify(line)).sort(),
  };
}

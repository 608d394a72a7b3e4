import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { countAuthFailure, forgetBlocks, forgetFailures } from '../../src/store/access/count-auth-failure.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { listUnknownJobs } from '../../src/store/jobs/stray-objects.ts';
import { keys } from '../../src/store/keys.ts';
import { type EntryStream, readOldestEntries } from '../../src/store/log/archived-parts.ts';
import { noteOldest } from '../../src/store/log/due-streams.ts';
import { findExpiredPart, forgetArchived } from '../../src/store/log/forget-archived.ts';
import { noteArchived } from '../../src/store/log/note-archived.ts';
import { paidLineStream, type StoredLogLine } from '../../src/store/log/read-lines.ts';
import { sweepLines } from '../../src/store/log/trim-lines.ts';
import type { Scenario, Step } from './job-scenarios.ts';
import { anAccount, aRunningJob, completed, holder, type TestStore } from './record.ts';

const laterMs = 3 * 86_400_000;

/** Brings a record to two request-log lines of one key, the second one three days after the first. */
function logging(step: (store: TestStore, lines: EntryStream<StoredLogLine>) => Promise<Step>): Scenario {
  return async (store) => {
    const caller = await anAccount(store, { credits: 9 });
    for (const sinceMs of [0, laterMs]) {
      store.advance(sinceMs);
      await settleJob(store, holder, await aRunningJob(store, caller), completed);
    }
    return { account: caller.accountId, step: await step(store, paidLineStream(caller.keyId)) };
  };
}

/** Moves the first line of two to the object store. The archive brings the index up to date when it looks there next. */
async function moveFirst(store: TestStore, lines: EntryStream<StoredLogLine>): Promise<Step> {
  const [oldest] = await readOldestEntries(store, lines, 1);
  if (!oldest) throw new Error('there is no line');
  return async (s) => {
    const part = { object: `days/paid/${lines.id}/0-0/lines.gz` };
    await noteArchived(s, lines, { from: '0-0', newest: oldest, part }, 0);
    return noteOldest(s, lines);
  };
}

/**
 * Steps that remove old lines and failures. A repetition answers less, because what was done before the fault stays done: only
 * what the record then holds is compared.
 */
export const logScenarios: Readonly<Record<string, Scenario>> = {
  'note-archived': logging(moveFirst),
  'forget-archived': logging(async (store, lines) => {
    await (await moveFirst(store, lines))(store);
    const [part] = await findExpiredPart(store, keys.days, 0);
    if (!part) throw new Error('no archived part is expired');
    return (s) => forgetArchived(s, part);
  }),
  'trim-lines': logging(async () => async (s) => void (await sweepLines(s, laterMs / 2))),
  'note-oldest': logging(async (store, lines) => {
    const [oldest] = await readOldestEntries(store, lines, 1);
    await store.connection.send(['XDEL', lines.stream, oldest?.entry ?? '']);
    return (s) => noteOldest(s, lines);
  }),
  'note-oldest of an empty stream': logging(async (store, lines) => {
    await store.connection.send(['XTRIM', lines.stream, 'MAXLEN', '0']);
    return (s) => noteOldest(s, lines);
  }),
  'forget-failures': async (store) => {
    await countAuthFailure(store, '192.0.2.8', { maxFailures: 3, windowMs: 1000, blockMs: 1000 });
    store.advance(laterMs);
    return { step: async (s) => void (await forgetFailures(s, laterMs / 2)) };
  },
  'forget-blocks': async (store) => {
    await countAuthFailure(store, '192.0.2.9', { maxFailures: 1, windowMs: 1000, blockMs: 1000 });
    store.advance(laterMs);
    return { step: async (s) => void (await forgetBlocks(s)) };
  },
  'note-strays': async () => {
    const ids = [randomUUID(), randomUUID()];
    return { step: (s) => listUnknownJobs(s, Readable.from([ids])) };
  },
};

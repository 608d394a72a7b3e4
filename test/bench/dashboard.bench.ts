import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { archiveDays } from '../../src/archive/archive-days.ts';
import { readJsonLines } from '../../src/archive/json-lines.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { openFolder } from '../../src/objects/folder-store.ts';
import type { ReadArchivedPart } from '../../src/store/log/archived-parts.ts';
import { type LineCursor, listKeyNames, pageLines } from '../../src/store/log/page-lines.ts';
import { freeLineStream } from '../../src/store/log/read-lines.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import { freeLine } from '../support/free-line.ts';
import { anAccount, holder, lead, storeOf, type TestStore } from '../support/record.ts';
import { aLog, type TestRedis } from '../support/redis.ts';
import { withRedis } from './bench-redis.ts';
import { type Dashboards, openDashboards } from './dashboards.ts';
import type { Measurement } from './measurement.ts';
import { alternate, microsOf, ratioOf } from './rounds.ts';
import { settles } from './settlements.ts';

const rounds = 7;
const lines = 100_000;
const dashboards = 500;
const day = 86_400_000;
const neverOpened = () => Promise.reject(new Error('no day is archived'));

/** The cost of what people look at: a page of a long request log, and live lists while jobs end. */
export async function* measure(): AsyncGenerator<Measurement> {
  yield* await withRedis({}, comparePages);
  yield await withRedis({}, compareSettles);
}

/** The newest page of a request log against the oldest, in the record and in the object store. */
async function comparePages(redis: TestRedis): Promise<Measurement[]> {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-bench-'));
  try {
    const store = storeOf(redis.connection);
    const { accountId, keyId } = await anAccount(store, { quota: 10 });
    await writeLines(store, { accountId, keyId });
    const names = await listKeyNames(store, accountId);
    const { stream } = freeLineStream(keyId);
    const oldest = await redis.connection.read(['XRANGE', stream, '-', '+', 'COUNT', '51']);
    const last: LineCursor = { entry: oldest.at(-1)![0], stream };
    const page = (after: LineCursor | null, open: ReadArchivedPart = neverOpened) => ({
      redis,
      calls: 200,
      work: async () => {
        for (let n = 0; n < 200; n++) {
          const found = await pageLines(store, names, { limit: 50, after, open });
          if (found.lines.length !== 50) throw new Error(`a page has ${found.lines.length} lines`);
        }
      },
    });
    const kept = await alternate(rounds, { first: page(null), last: page(last) });
    store.advance(3 * day);
    const objects = await openFolder({
      folder,
      seal: makeSeal({ secret: Buffer.alloc(32), old: null }),
      now: store.clock.now,
    });
    await archiveDays({
      ...{ store, objects, lifetimes: { job: 30 * day }, goOn: () => true },
      metrics: makeMetrics(),
      log: aLog().log,
    });
    const open = (object: string) => readJsonLines(objects, object);
    const archived = await alternate(rounds, { first: page(null, open), last: page(last, open) });
    const told = (costs: typeof kept) =>
      `${microsOf(costs.last, 'bothMicros')} : ${microsOf(costs.first, 'bothMicros')} a page, CPU`;
    return [
      {
        what: `last page of ${lines} log lines / first`,
        ratio: ratioOf(kept.last, kept.first, 'bothMicros'),
        bound: { most: 1.5 },
        because: told(kept),
      },
      {
        what: 'the same in the object store, last page / first',
        ratio: ratioOf(archived.last, archived.first, 'bothMicros'),
        bound: { most: 1.5 },
        because: told(archived),
      },
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function writeLines(
  store: TestStore,
  key: { readonly accountId: string; readonly keyId: string },
): Promise<void> {
  for (let written = 0; written < lines; written += 5_000) {
    const log = openRequestLog(store, 1_000_000, aLog().log);
    for (let n = 0; n < 5_000; n++) {
      log.add(key, { ...freeLine, at: store.clock.now(), endpoint: 'GET /v1/jobs/{id}', duration_ms: n });
    }
    await log.close();
  }
}

/** The end of a running job while nobody looks, and while 500 pages of as many accounts show their jobs. */
async function compareSettles(redis: TestRedis): Promise<Measurement> {
  const open: Dashboards = await openDashboards(redis, dashboards);
  try {
    const workload = await settles(redis);
    const prepared = async (then: () => Promise<void>) => {
      await workload.prepare?.();
      await then();
      // The lists took longer to open than a lead lasts.
      await lead(storeOf(redis.connection), holder);
    };
    const { alone, watched } = await alternate(rounds, {
      alone: { ...workload, prepare: () => prepared(open.close) },
      watched: { ...workload, prepare: () => prepared(open.open) },
    });
    return {
      what: `settle of a job beside ${dashboards} live lists / beside none`,
      ratio: ratioOf(watched, alone, 'micros'),
      bound: { most: 1.2 },
      because: `${microsOf(watched, 'micros')} : ${microsOf(alone, 'micros')} a settle, 64 at a time`,
    };
  } finally {
    await open.stop();
  }
}

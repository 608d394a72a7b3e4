import { type ArchiveObjects, archiveDays } from '../../src/archive/archive-days.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { connect } from '../../src/store/redis/connection.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { aLog, maxOpenMs } from './redis.ts';

/**
 * A process of its own, so that it can be killed, or has little memory: `move URL FOLDER OFFSET POINT NTH` moves ended days
 * and says `here` when it has come to a point of its nth object, where it waits for its end; `verify URL ACCOUNT` says how many entries it saw.
 */
const [verb, url = '', argument = '', offset = '0', point = '', nth = '1'] = process.argv.slice(2);
let count = 0;
const connection = await connect(url, { log: aLog().log, openMs: maxOpenMs });
const clock = { now: () => Date.now() + Number(offset), offset: () => Number(offset) };
const store: RecordStore = { connection, clock };
if (verb === 'verify') {
  const { entries, problems } = await verifyLedger(store, argument);
  console.log(JSON.stringify({ entries, problems }));
} else {
  const seal = makeSeal({ secret: Buffer.alloc(32) });
  const objects = await openFolder({ folder: argument, seal, now: clock.now });
  console.log('ready');
  const lifetimes = { job: 30 * 86_400_000 };
  const { log } = aLog();
  const parts = { store: waitingStore(), objects: waitingObjects(objects), metrics: makeMetrics(), log };
  await archiveDays({ ...parts, lifetimes, goOn: () => true });
}
await connection.close();

function waitingObjects(objects: FolderStore): ArchiveObjects {
  return {
    ...objects,
    keep: async (key, body) => {
      count += 1;
      if (isAt('before')) await waitHere();
      if (isAt('within')) await objects.receive(await objects.permit(key, { bytes: body.length }), half(body));
      await objects.keep(key, body);
      if (isAt('between')) await waitHere();
    },
  };
}

function waitingStore(): RecordStore {
  const run: typeof connection.eval = async (...script) => {
    const reply = await connection.eval(...script);
    if (isAt('after') && String(reply) === 'moved') await waitHere();
    return reply;
  };
  return { ...store, connection: { ...connection, eval: run } };
}

function isAt(where: string): boolean {
  return point === where && count === Number(nth);
}

async function* half(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body.subarray(0, body.length / 2);
  await waitHere();
}

async function waitHere(): Promise<never> {
  console.log('here');
  // A timer keeps the process alive until it is killed.
  setInterval(() => {}, 60_000);
  return new Promise(() => {});
}

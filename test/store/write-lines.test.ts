import { expect } from 'chai';
import { chargeCall } from '../../src/store/access/charge-call.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import type { Connection } from '../../src/store/redis/connection.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { freeLine } from '../support/free-line.ts';
import { admitted, anAccount, aRunningJob, completed, holder, type TestStore } from '../support/record.ts';
import { aLog } from '../support/redis.ts';

describe('the writer of the request log', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  it('writes lines that come during a write at its next time together, and not each of them alone', async () => {
    const key = await anAccount(store);
    let writes = 0;
    const connection: Connection = {
      ...store.connection,
      eval: (...call) => {
        writes++;
        if (writes < 20) add(404);
        return store.connection.eval(...call);
      },
    };
    const lines = openRequestLog({ ...store, connection }, 1000, aLog().log);
    const add = (status: number) => lines.add(key, { ...freeLine, at: store.clock.now(), status });
    add(200);
    await lines.flush();
    expect(writes).to.equal(1);
    await lines.close();
    const kept = await readLines(store, key.accountId, 100);
    expect(kept.map(({ status }) => status)).to.include.members([200, 404]);
  });

  it('writes the fields of the lines that carry money, which the scripts of a settle and of a charge write', async () => {
    const { accountId, hash, keyId } = await anAccount(store, { credits: 2 });
    const fieldsOf = async (stream: string) => {
      const entries = (await store.connection.read(['XRANGE', stream, '-', '+'])) as [string, string[]][];
      return entries.map(([, flat]) => flat.filter((_, n) => n % 2 === 0).sort());
    };
    const id = await admitted(store, { accountId, hash }, { work: { holdMs: 60_000 } });
    const call = {
      id,
      accountId,
      keyId,
      endpoint: 'metadata',
      repeat: null,
      line: 'GET /',
      ip: '',
      answer: '',
    } as const;
    await chargeCall(store, call, 1);
    await settleJob(store, holder, await aRunningJob(store, { accountId, hash }), completed);
    const lines = openRequestLog(store, 1000, aLog().log);
    lines.add({ accountId, keyId }, { ...freeLine, at: 1 });
    await lines.close();
    const [free] = await fieldsOf(keys.freeLines(keyId));
    expect(await fieldsOf(keys.paidLines(keyId))).to.deep.equal([free, free]);
  });
});

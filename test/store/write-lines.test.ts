import { expect } from 'chai';
import { readLines } from '../../src/store/log/read-lines.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import type { Connection } from '../../src/store/redis/connection.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anAccount, type TestStore } from '../support/record.ts';
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
    const add = (status: number) =>
      lines.add(key, { at: store.clock.now(), endpoint: 'usage', status, duration_ms: 1, ip: '192.0.2.1', credits: 0 });
    add(200);
    await lines.flush();
    expect(writes).to.equal(1);
    await lines.close();
    const kept = await readLines(store, key.accountId, 100);
    expect(kept.map(({ status }) => status)).to.include.members([200, 404]);
  });
});

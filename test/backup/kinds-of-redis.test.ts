import { expect } from 'chai';
import { keys } from '../../src/store/keys.ts';
import { prepareSchema } from '../../src/store/schema.ts';
import { dumpRecord, keysOfRestore, runBeside } from '../support/backups.ts';
import { anAccount, storeOf } from '../support/record.ts';
import { aFolder, startTestCluster, startTestSentinel, startTestServer, type TestRecord } from '../support/redis.ts';

/** The kinds of Redis that a record may be in, each with the URL of the node that has it. */
const kinds: Record<string, () => Promise<{ record: TestRecord; node: () => string }>> = {
  'a Cluster': async () => {
    const record = await startTestCluster();
    return { record, node: () => record.nodes[2]!.url };
  },
  'a master with Sentinel, a replica and a password': async () => {
    const record = await startTestSentinel();
    return { record, node: () => record.master.url };
  },
};

describe('backup and restore of', () => {
  for (const [title, open] of Object.entries(kinds)) {
    it(`${title}: out of it into a single Redis, and back`, async () => {
      const [{ record, node }, single, home] = [await open(), await startTestServer(), aFolder()];
      try {
        const store = storeOf(record.connection);
        await prepareSchema(store);
        for (let n = 0; n < 5; n++) await anAccount(store, { credits: 5 });
        const run = async (url: string, ...line: string[]) => {
          const { code, out } = await runBeside(line, { TRAWL_REDIS_URL: url, TRAWL_DATA: home.folder });
          expect(code, out).to.equal(0);
        };
        const before = await dumpRecord(node());
        await run(record.url, 'record', 'backup', home.folder);
        expect(record.connection.durability().replicas, 'replicas').to.equal(title === 'a Cluster' ? 0 : 1);
        await run(single.url, 'record', 'restore', home.folder, '--without-files');
        await run(record.url, 'record', 'restore', home.folder, '--without-files', '--replace');
        const after = [await dumpRecord(single.url), await dumpRecord(node())];
        // The command that takes the backup notes its release, too.
        before.delete(keys.releases);
        for (const dump of after) {
          for (const name of [keys.releases, ...keysOfRestore]) dump.delete(name);
          expect([...dump]).to.deep.equal([...before]);
        }
      } finally {
        await Promise.all([record.stop(), single.stop()]);
        home.remove();
      }
    });
  }

  it('a Cluster of which the URL names a node that does not have the record', async () => {
    const [cluster, home] = [await startTestCluster(), aFolder()];
    try {
      const store = storeOf(cluster.connection);
      await prepareSchema(store);
      await anAccount(store, { credits: 5 });
      const env = { TRAWL_REDIS_URL: cluster.nodes[0]!.url, TRAWL_DATA: home.folder };
      const { code, json, out } = await runBeside(['record', 'backup', home.folder], env);
      expect(code, out).to.equal(0);
      expect(json.keys).to.equal((await dumpRecord(cluster.nodes[2]!.url)).size);
    } finally {
      await cluster.stop();
      home.remove();
    }
  });
});

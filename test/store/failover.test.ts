import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { Refusal } from '../../src/base/errors.ts';
import { type Connection, connect } from '../../src/store/redis/connection.ts';
import {
  aLog,
  patient,
  startTestCluster,
  startTestSentinel,
  type TestCluster,
  type TestNode,
  type TestSentinel,
} from '../support/redis.ts';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';

const slot = '11042';
const key = '{trawl}:n';

describe('the connection to a cluster', () => {
  let cluster: TestCluster;
  before(async () => {
    cluster = await startTestCluster({ replicas: 1 });
  });
  after(() => cluster.stop());

  it('knows the slot of the record', async () => {
    expect(await cluster.nodes[0]!.ask('CLUSTER', 'KEYSLOT', key)).to.equal(Number(slot));
  });

  it('finds the node of the record from any node that is named', async () => {
    for (const { url } of cluster.nodes) {
      const connection = await connect(url, { log: aLog().log, ...patient });
      await connection.send(['INCR', key]);
      await connection.close();
    }
    expect(await cluster.connection.read(['GET', key])).to.equal('4');
    await cluster.flush();
  });

  it('follows the slot to another node and back without a failed call', async () => {
    const [first, second, third] = cluster.nodes as [TestNode, TestNode, TestNode];
    const connection = await connect(first.url, { log: aLog().log, ...patient });
    const load = startLoad(connection, ['GET', key]);
    for (const [from, to] of [
      [third, second],
      [second, third],
    ] as const) {
      await to.ask('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(await from.ask('CLUSTER', 'MYID')));
      for (const node of [to, from])
        await node.ask('CLUSTER', 'SETSLOT', slot, 'NODE', String(await to.ask('CLUSTER', 'MYID')));
      await load.goesOn();
    }
    const { failures } = await load.stop();
    await connection.close();
    expect(failures).to.deep.equal([]);
  });

  it('works again after the node of the record was killed', async () => {
    const heard: string[] = [];
    await cluster.connection.subscribe('news', (text) => heard.push(text));
    const load = startLoad(cluster.connection, ['INCR', key]);
    await load.goesOn();
    process.kill(cluster.nodes[2]!.process.pid, 'SIGKILL');
    await load.fails();
    await load.goesOn();
    expectBounded(await load.stop());
    await until(() => tell(cluster.connection, heard), 5, 'the subscription hears again');
  });

  it('is opened while other nodes are down', async () => {
    process.kill(cluster.nodes[0]!.process.pid, 'SIGKILL');
    const connection = await connect(cluster.url, { log: aLog().log, ...patient });
    expect(await connection.send(['INCR', key])).to.be.a('number');
    await connection.close();
  });
});

describe('the connection behind a sentinel', () => {
  let sentinel: TestSentinel;
  before(async () => {
    sentinel = await startTestSentinel();
  });
  after(() => sentinel.stop());

  it('leads to the master', async () => {
    await sentinel.connection.send(['SET', key, '1']);
    expect(await sentinel.master.ask('GET', key)).to.equal('1');
  });

  it('is refused with a sentence for a name that the sentinel does not know', async () => {
    const failure = await connect(sentinel.url.replace(/trawl$/, 'other'), { log: aLog().log }).catch((error) => error);
    expect(failure).to.include({ code: 'unavailable' });
    expect(failure.message).to.contain('The Sentinels know no master with the name other');
  });

  it('leads to the new master after the old one was killed', async () => {
    const heard: string[] = [];
    await sentinel.connection.subscribe('news', (text) => heard.push(text));
    const load = startLoad(sentinel.connection, ['INCR', key]);
    await load.goesOn();
    process.kill(sentinel.master.process.pid, 'SIGKILL');
    await load.fails();
    await load.goesOn();
    expectBounded(await load.stop());
    expect(await sentinel.replica.ask('ROLE')).to.include('master');
    await until(() => tell(sentinel.connection, heard), 5, 'the subscription hears again');
  });
});

/** Calls again and again until it is stopped, three at a time: a call that begins while another one finds its new node fails at once. */
function startLoad(connection: Connection, command: string[]) {
  let [isOn, answered, longestSeconds] = [true, 0, 0];
  const failures: unknown[] = [];
  const call = async () => {
    const { seconds } = await timed(
      connection.send(command).then(
        () => (answered += 1),
        (error) => failures.push(error),
      ),
    );
    longestSeconds = Math.max(longestSeconds, seconds);
  };
  const callAgain = async () => {
    for (; isOn; await pause(2)) await Promise.all([call(), call(), call()]);
  };
  const ended = callAgain();
  const rises = async (count: () => number, what: string) => {
    const before = count();
    await until(() => count() > before + 20, 20, what);
  };
  return {
    goesOn: () => rises(() => answered, 'calls are answered'),
    fails: () => rises(() => failures.length, 'calls fail'),
    stop: async () => {
      isOn = false;
      await ended;
      return { failures, longestSeconds };
    },
  };
}

function expectBounded({ failures, longestSeconds }: { failures: unknown[]; longestSeconds: number }): void {
  expect(longestSeconds).to.be.below(2);
  for (const failure of failures) expect(failure).to.be.instanceOf(Refusal).and.include({ code: 'unavailable' });
}

/** Publishes until it is heard. */
async function tell(connection: Connection, heard: string[]): Promise<boolean> {
  await connection.send(['PUBLISH', 'news', 'hello']);
  return heard.includes('hello');
}

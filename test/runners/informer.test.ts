import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { Informer, type InformerOptions } from '../../src/runners/kubernetes/informer.ts';
import { type KubeClient, openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import { type FakeApiServer, type FakeRequest, startFakeApiServer } from '../support/cluster/fake-api-server.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

interface Thing {
  readonly name: string;
  readonly uid: string;
  readonly version: string;
  readonly word: string;
}
type Raw = { metadata: { name: string; uid: string; resourceVersion: string }; word: string };

const thing = (name: string, version: number, word = ''): Raw => {
  return { metadata: { name, uid: `uid-of-${name}`, resourceVersion: String(version) }, word };
};
const read = ({ metadata, word }: Raw): Thing => {
  return { name: metadata.name, uid: metadata.uid, version: metadata.resourceVersion, word };
};
const listOf = (version: number, ...items: Raw[]) => ({ items, metadata: { resourceVersion: String(version) } });
const event = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;
const times = { silentMs: 60_000, relistMs: 600_000, firstPauseMs: 5 };

describe('the informer', () => {
  let server: FakeApiServer;
  let client: KubeClient;
  let informer: Informer<Thing>;
  let told: string[];
  const { log, lines } = aLog();

  beforeEach(async () => {
    server = await startFakeApiServer();
    const access = { server: server.url, tls: async () => ({}), headers: async () => ({}) };
    client = openKubeClient({ access, rateLimit: makeRateLimiter(1_000, 1_000) });
    told = [];
  });
  afterEach(async () => {
    await informer.close();
    await client.close();
    await server.stop();
  });

  const begin = (given: Partial<InformerOptions<Thing>> = {}) => {
    informer = new Informer<Thing>({
      ...{ client, log, read, times, path: '/things', selector: 'mine=yes' },
      onChange: (before, after) => {
        told.push(after ? `${after.name}${after.version}` : `-${before?.name}`);
      },
      ...given,
    });
  };
  /** Answers the list, and gives the watch that follows. */
  const watchAfter = async (list: object): Promise<FakeRequest> => {
    (await server.next()).answer(200, list);
    return server.next();
  };
  const isTold = (...words: string[]) =>
    until(() => words.join() === told.join(), 5, `${words.join()} is told`).catch(() => {
      expect(told).to.deep.equal(words);
    });

  it('lists page by page, then watches from the version of the list', async () => {
    begin();
    const first = await server.next();
    expect(first.path).to.equal('/things');
    expect(Object.fromEntries(first.query)).to.deep.equal({ labelSelector: 'mine=yes', limit: '500' });
    first.answer(200, { items: [thing('a', 5)], metadata: { continue: 'more', resourceVersion: '9' } });
    const second = await server.next();
    expect(second.query.get('continue')).to.equal('more');
    second.answer(200, listOf(9, thing('b', 7)));
    const watch = await server.next();
    expect(Object.fromEntries(watch.query)).to.deep.include({
      labelSelector: 'mine=yes',
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: '9',
    });
    watch.write(event('ADDED', thing('c', 10)) + event('MODIFIED', thing('a', 11)) + event('DELETED', thing('b', 12)));
    await isTold('a5', 'b7', 'c10', 'a11', 'b12', '-b');
    expect(['a', 'b', 'c'].filter((name) => informer.cache.get(name))).to.deep.equal(['a', 'c']);
  });

  it('continues a watch that broke inside a letter after the last whole event', async () => {
    begin();
    const watch = await watchAfter(listOf(1));
    const piece = Buffer.from(event('ADDED', thing('ä', 2)) + event('ADDED', thing('ö', 3)));
    const middle = piece.lastIndexOf(Buffer.from('ö')) + 1;
    watch.write(piece.subarray(0, 20));
    watch.write(piece.subarray(20, middle));
    await isTold('ä2');
    watch.destroy();
    const again = await server.next();
    expect(again.query.get('resourceVersion')).to.equal('2');
    again.write(event('ADDED', thing('ö', 3)));
    await isTold('ä2', 'ö3');
  });

  it('continues from the version of the last bookmark', async () => {
    begin();
    const watch = await watchAfter(listOf(1));
    watch.write(event('BOOKMARK', { metadata: { resourceVersion: '77' } }));
    watch.end();
    expect((await server.next()).query.get('resourceVersion')).to.equal('77');
    expect(told).to.deep.equal([]);
  });

  for (const [title, refuse] of [
    ['with status 410', (asked: FakeRequest) => asked.answer(410, { code: 410, reason: 'Expired' })],
    ['in the middle of it', (asked: FakeRequest) => asked.write(event('ERROR', { code: 410, reason: 'Gone' }))],
    [
      'as a version of the future',
      (asked: FakeRequest) => asked.answer(504, { message: 'Too large resource version: 9' }),
    ],
  ] as const) {
    it(`lists again when its version is refused ${title}, and reports what was deleted meanwhile`, async () => {
      begin();
      refuse(await watchAfter(listOf(9, thing('a', 5), thing('b', 6))));
      const list = await server.next();
      expect(list.query.get('watch')).to.equal(null);
      list.answer(200, listOf(3, thing('b', 2)));
      // A backup of the cluster came back: its versions begin again where it was made.
      expect((await server.next()).query.get('resourceVersion')).to.equal('3');
      expect(told).to.deep.equal(['a5', 'b6', 'b2', '-a']);
    });
  }

  it('reports an object that was deleted while no watch was open', async () => {
    begin();
    (await watchAfter(listOf(9, thing('a', 5), thing('b', 6)))).answer(410, { code: 410, reason: 'Expired' });
    await watchAfter(listOf(20, thing('b', 6)));
    await isTold('a5', 'b6', '-a');
  });

  it('replaces a watch that is silent', async () => {
    begin({ times: { ...times, silentMs: 100 } });
    const watch = await watchAfter(listOf(1));
    expect((await server.next()).query.get('resourceVersion')).to.equal('1');
    await until(watch.isGone, 5, 'the silent one is left');
  });

  it('lists everything again after the relist time, although the watch is alive', async () => {
    begin({ times: { ...times, relistMs: 100 } });
    const watch = await watchAfter(listOf(2, thing('ghost', 2)));
    (await server.next()).answer(200, listOf(5));
    await isTold('ghost2', '-ghost');
    await until(watch.isGone, 5, 'the old watch is left');
  });

  it('continues after errors of the server and of the connection', async () => {
    begin();
    (await server.next()).answer(500, { message: 'no' });
    // The client itself asks again after a broken connection.
    for (let n = 0; n < 3; n++) (await server.next()).destroy();
    (await watchAfter(listOf(1))).answer(500, { message: 'no' });
    const watch = await server.next();
    watch.write('this is no JSON\n');
    (await server.next()).write(event('ADDED', thing('a', 2)));
    await isTold('a2');
    expect(lines.join('')).to.include('the watch of the cluster failed');
  });

  it('waits at most 7.5 s between tries', async () => {
    begin({ times: { ...times, firstPauseMs: 600_000 } });
    const said = lines.length;
    (await server.next()).answer(500, { message: 'no' });
    await until(() => lines.length > said, 5, 'it waits');
    expect(JSON.parse(lines.at(-1) ?? '').again_ms).to.be.within(2_500, 7_500);
  });

  it('pauses after a watch that ends at once', async () => {
    begin({ times: { ...times, firstPauseMs: 60_000 } });
    (await watchAfter(listOf(1))).answer(200, {});
    await until(() => lines.join('').includes('the watch ended at once'), 5, 'it is said');
  });

  it('continues after a listener that throws', async () => {
    begin({
      onChange: (_, after) => {
        told.push(after?.name ?? 'gone');
        throw new Error('a fault of the listener');
      },
    });
    const watch = await watchAfter(listOf(1, thing('a', 1)));
    watch.write(event('ADDED', thing('b', 2)));
    await isTold('a', 'b');
  });

  it('keeps a state that was put until a newer one comes from list or watch', async () => {
    begin();
    const watch = await watchAfter(listOf(1, thing('a', 1, 'listed')));
    await isTold('a1');
    informer.cache.put(thing('a', 10, 'answered'));
    watch.write(event('MODIFIED', thing('a', 9, 'before')) + event('ADDED', thing('b', 11)));
    await isTold('a1', 'a10', 'b11');
    expect(informer.cache.get('a')?.word).to.equal('answered');
    watch.write(event('DELETED', thing('a', 12)));
    await isTold('a1', 'a10', 'b11', 'a12', '-a');
  });

  it('lists once for all calls of refresh while no watch is alive', async () => {
    begin({ times: { ...times, firstPauseMs: 600_000 } });
    (await watchAfter(listOf(1))).answer(500, { message: 'no' });
    await until(() => lines.join('').includes('tried again'), 5, 'it waits');
    const asked = [informer.refresh(), informer.refresh()];
    (await server.next()).answer(200, listOf(2, thing('a', 2)));
    await Promise.all(asked);
    expect(told).to.deep.equal(['a2']);
    expect(informer.ageMs()).to.be.below(10_000);
    await until(() => server.openConnections() > 0, 5, 'it watches again');
    await server.next();
  });

  it('rejects refresh when the list fails', async () => {
    begin();
    const first = informer.refresh();
    (await server.next()).answer(403, { message: 'things are forbidden' });
    expect(await first.catch((error: Error) => error.message)).to.equal(
      'GET /things was answered with 403: things are forbidden',
    );
  });

  it('leaves no request open when it is closed during a list or a watch', async () => {
    begin();
    const list = await server.next();
    await informer.close();
    await until(list.isGone, 5, 'the list is left');
    begin();
    const watch = await watchAfter(listOf(1));
    await pause(0);
    await informer.close();
    await until(watch.isGone, 5, 'the watch is left');
  });
});

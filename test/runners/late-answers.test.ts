import { expect } from 'chai';
import type { KubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import type { FakeApiServer, FakeRequest } from '../support/cluster/fake-api-server.ts';
import { startKubeClients } from '../support/cluster/kube-clients.ts';
import { failureOf } from '../support/failure.ts';

/** The client rejects all late answers when the version is not told for half as long: a busy machine may halt this process for seconds. */
const patientMs = 30_000;
const noAnswer = { message: 'The API server does not answer' };

describe('the client of an API server whose answers are late', () => {
  let on: Awaited<ReturnType<typeof startKubeClients>>;
  let server: FakeApiServer;
  let client: KubeClient;
  let hasty: KubeClient;

  beforeEach(async () => {
    on = await startKubeClients({ answerMs: patientMs, tellsVersion: false });
    ({ server, client, hasty } = on);
  });
  afterEach(() => on.stop());

  it('rejects when no answer comes within the time limit', async () => {
    const asked = failureOf(hasty.ask('GET', '/a'));
    await server.next();
    expect(await asked).to.include(noAnswer);
  });

  it('rejects within the time limit while all connections hang', async () => {
    const asked = Array.from({ length: 40 }, () => failureOf(hasty.ask('GET', '/a')));
    for (const error of await Promise.all(asked)) expect(error).to.include(noAnswer);
  });

  it('asks a silent API server for its version alone and fails other requests at once, until anything is answered', async () => {
    const held = failureOf(hasty.ask('POST', '/a', { body: {} }));
    expect((await server.next()).path).to.equal('/a');
    expect((await server.next()).path).to.equal('/version');
    expect(await held).to.include(noAnswer);
    const [first, second] = [hasty.ask('GET', '/b'), failureOf(hasty.ask('GET', '/c'))];
    expect(await second).to.include(noAnswer);
    const asked = await server.next();
    expect(asked.path).to.equal('/version');
    asked.answer(403, {});
    (await server.next()).answer(200, { is: 'first' });
    expect(await first).to.deep.equal({ is: 'first' });
    const [, next] = [hasty.ask('GET', '/d'), await server.next()];
    expect(next.path).to.equal('/d');
    next.answer(200, {});
  });

  it('asks for the version again after that was not told either', async () => {
    const held = failureOf(hasty.ask('GET', '/a'));
    for (const path of ['/a', '/version']) expect((await server.next()).path).to.equal(path);
    expect(await held).to.include(noAnswer);
    const second = failureOf(hasty.ask('GET', '/b'));
    expect((await server.next()).path).to.equal('/version');
    expect(await second).to.include(noAnswer);
    const [third, asked] = [hasty.ask('GET', '/c'), server.next()];
    await Promise.race([third, asked]);
    (await asked).answer(200, {});
    (await server.next()).answer(200, { is: 'third' });
    expect(await third).to.deep.equal({ is: 'third' });
  });

  it('goes on waiting for late answers while the API server tells its version, and asks for that once for all of them', async () => {
    const asked = ['/a', '/b'].map((path) => client.ask('POST', path, { body: {} }));
    const [first, second] = [await server.next(), await server.next()];
    const version = await server.next();
    expect(version.path).to.equal('/version');
    version.answer(200, {});
    const [, next] = [client.ask('GET', '/c'), await server.next()];
    expect(next.path).to.equal('/c');
    next.answer(200, {});
    for (const { path, answer } of [first, second]) answer(201, { path });
    expect(await Promise.all(asked)).to.have.deep.members([{ path: '/a' }, { path: '/b' }]);
  });

  it('goes on waiting for six late answers at most, and rejects another within the usual limit', async () => {
    const ended: (string | null)[] = [];
    const asked = Array.from({ length: 7 }, async (_, n) => {
      const error = await failureOf(client.ask('GET', `/${n}`));
      ended.push(error === null ? null : `/${n}`);
    });
    const held: FakeRequest[] = [];
    while (held.length < 7) held.push(await server.next());
    // The client asks for the version once, and after a halt of this process once more.
    const answerOthers = async () => {
      for (let path = ''; path !== '/last'; ) {
        const other = await server.next();
        other.answer(200, {});
        path = other.path;
      }
    };
    const others = answerOthers();
    await Promise.race(asked);
    expect(ended).to.deep.equal(['/6']);
    for (const { answer } of held) answer(200, {});
    await Promise.all([...asked, client.ask('GET', '/last'), others]);
    expect(ended.slice(1)).to.deep.equal(Array(6).fill(null));
  });

  it('waits for the headers of a stream for the usual limit, without a question for the version', async () => {
    const reader = { onStart: () => {}, line: () => {} };
    const watched = failureOf(hasty.stream('/a', {}, new AbortController().signal, reader));
    expect((await server.next()).path).to.equal('/a');
    expect(await watched).to.include(noAnswer);
    const [other, next] = [client.ask('GET', '/b'), await server.next()];
    expect(next.path, 'asked behind the stream').to.equal('/b');
    next.answer(200, {});
    await other;
  });

  it('rejects late answers of an API server that does not tell its version either', async () => {
    const asked = ['/a', '/b'].map((path) => failureOf(hasty.ask('GET', path)));
    for (const error of await Promise.all(asked)) expect(error).to.include(noAnswer);
    expect((await Promise.all([server.next(), server.next(), server.next()])).map(({ path }) => path)).to.deep.equal([
      ...['/a', '/b'],
      '/version',
    ]);
  });
});

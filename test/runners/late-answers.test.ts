import { expect } from 'chai';
import { type KubeClient, openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import { type FakeApiServer, type FakeRequest, startFakeApiServer } from '../support/cluster/fake-api-server.ts';

const noAnswer = { message: 'The API server does not answer' };

describe('the client of an API server whose answers are late', () => {
  let server: FakeApiServer;
  let client: KubeClient;
  /** For requests that nobody answers: one that is answered may take longer on a busy machine. */
  let hasty: KubeClient;

  beforeEach(async () => {
    server = await startFakeApiServer();
    const access = { server: server.url, tls: {}, headers: async () => ({}) };
    const rateLimit = makeRateLimiter(10_000, 10_000);
    client = openKubeClient({ access, rateLimit });
    hasty = openKubeClient({ access, rateLimit, answerMs: 800 });
  });
  afterEach(async () => {
    await client.close();
    await hasty.close();
    await server.stop();
  });
  const failure = (asking: Promise<unknown>) =>
    asking.then(
      () => null,
      (error: unknown) => error,
    );

  it('rejects when no answer comes within the time limit', async () => {
    const asked = failure(hasty.ask('GET', '/a'));
    await server.next();
    expect(await asked).to.include(noAnswer);
  });

  it('rejects within the time limit while all connections hang', async () => {
    const asked = Array.from({ length: 40 }, () => failure(hasty.ask('GET', '/a')));
    for (const error of await Promise.all(asked)) expect(error).to.include(noAnswer);
  });

  it('asks a silent API server for its version alone and fails other requests at once, until anything is answered', async () => {
    const held = failure(hasty.ask('POST', '/a', { body: {} }));
    expect((await server.next()).path).to.equal('/a');
    expect((await server.next()).path).to.equal('/version');
    expect(await held).to.include(noAnswer);
    const [first, second] = [hasty.ask('GET', '/b'), failure(hasty.ask('GET', '/c'))];
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
      const error = await failure(client.ask('GET', `/${n}`));
      ended.push(error === null ? null : `/${n}`);
    });
    const held: FakeRequest[] = [];
    while (ended.length === 0) {
      const next = await server.next();
      if (next.path === '/version') next.answer(200, {});
      else held.push(next);
    }
    expect(ended).to.deep.equal(['/6']);
    for (const { answer } of held) answer(200, {});
    await Promise.all(asked);
    expect(ended.slice(1)).to.deep.equal(Array(6).fill(null));
  });

  it('rejects late answers of an API server that does not tell its version either', async () => {
    const asked = ['/a', '/b'].map((path) => failure(hasty.ask('GET', path)));
    for (const error of await Promise.all(asked)) expect(error).to.include(noAnswer);
    expect((await Promise.all([server.next(), server.next(), server.next()])).map(({ path }) => path)).to.deep.equal([
      ...['/a', '/b'],
      '/version',
    ]);
  });
});

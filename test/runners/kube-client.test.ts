import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { rereadAfter } from '../../src/base/reread.ts';
import { type KubeClient, KubeError, openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import type { FakeApiServer } from '../support/cluster/fake-api-server.ts';
import { hastyMs, startKubeClients } from '../support/cluster/kube-clients.ts';
import { failureOf } from '../support/failure.ts';
import { until } from '../support/until.ts';

const never = new AbortController().signal;

describe('the client of an API server', () => {
  let on: Awaited<ReturnType<typeof startKubeClients>>;
  let server: FakeApiServer;
  let client: KubeClient;
  let hasty: KubeClient;

  beforeEach(async () => {
    on = await startKubeClients({ maxHastyMs: hastyMs });
    ({ server, client, hasty } = on);
  });
  afterEach(() => on.stop());

  it('sends 200 requests over at most eight connections', async () => {
    const asked = Array.from({ length: 200 }, (_, n) => client.ask<{ n: number }>('GET', `/${n}`));
    for (let n = 0; n < 200; n++) {
      const { path, answer } = await server.next();
      answer(200, { n: Number(path.slice(1)) });
    }
    expect((await Promise.all(asked)).map(({ n }) => n)).to.deep.equal(Array.from({ length: 200 }, (_, n) => n));
    expect(server.allConnections()).to.be.at.most(8);
  });

  it('sends its token, its user agent and the content type', async () => {
    const asked = client.ask('GET', '/a', { query: { x: 'y', left: undefined } });
    const { query, answer } = await server.next();
    answer(200, {});
    await asked;
    const changed = client.change('PATCH', '/a', { b: 1 });
    const { headers, ...change } = await server.next();
    change.answer(200, {});
    await changed;
    expect(headers).to.include({
      authorization: 'Bearer word',
      'user-agent': 'trawl',
      'content-type': 'application/strategic-merge-patch+json',
      accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json',
    });
    expect([...query.keys()]).to.deep.equal(['x']);
  });

  it('finds a server below a path of its URL', async () => {
    const access = { server: `${server.url}/k8s/clusters/c-1/`, tls: async () => ({}), headers: async () => ({}) };
    const below = openKubeClient({ access, rateLimit: makeRateLimiter(10, 10) });
    const asked = below.ask('GET', '/api/v1/pods', { query: { limit: 5 } });
    const { path, query, answer } = await server.next();
    answer(200, {});
    await asked;
    expect([path, ...query]).to.deep.equal(['/k8s/clusters/c-1/api/v1/pods', ['limit', '5']]);
    await below.close();
  });

  it('rejects with status, reason and message of a refusal', async () => {
    const asked = failureOf(client.ask('POST', '/a', { body: {} }));
    (await server.next()).answer(409, { message: 'it is there', reason: 'AlreadyExists' });
    const error = (await asked) as KubeError;
    expect(error).to.be.instanceOf(KubeError);
    expect([error.status, error.reason]).to.deep.equal([409, 'AlreadyExists']);
    expect(error.message).to.equal('POST /a was answered with 409: it is there');
  });

  it('halves its speed after a 429 and waits for Retry-After', async () => {
    const asked = client.change('DELETE', '/a', {});
    (await server.next()).answer(429, {}, { 'retry-after': '1' });
    const began = performance.now();
    (await server.next()).answer(200, {});
    await asked;
    expect(performance.now() - began).to.be.at.least(950);
    expect(on.slowed()).to.equal(1);
  });

  it('does not wait for a Retry-After of an hour, which would stop every step that needs the API server', async () => {
    for (const status of [429, 503]) {
      const asked = failureOf(client.ask('GET', '/a'));
      (await server.next()).answer(status, { message: 'be back soon' }, { 'retry-after': '3600' });
      const waited = pause(60_000, 'waits', { ref: false });
      expect(await Promise.race([asked, waited])).to.include({ status });
    }
  });

  it('repeats a request after a broken connection, a Retry-After and a quota conflict, but not after a plain 500', async () => {
    const asked = client.ask('POST', '/a', { body: {} });
    (await server.next()).destroy();
    (await server.next()).answer(503, {}, { 'retry-after': '0' });
    (await server.next()).answer(200, {});
    await asked;
    const taken = client.ask('POST', '/c', { body: {} });
    (await server.next()).answer(409, { reason: 'Conflict' });
    (await server.next()).answer(200, {});
    await taken;
    const other = failureOf(client.ask('GET', '/b'));
    (await server.next()).answer(500, {});
    expect(await other).to.include({ status: 500 });
  });

  it('streams an answer past the time limit', async () => {
    const lines: string[] = [];
    const following = hasty.stream('/a', { watch: true }, never, {
      onStart: () => void lines.push('started'),
      line: (text) => void lines.push(text),
    });
    const asked = await server.next();
    asked.write('one\nt');
    // Another request goes past its time meanwhile, though others are answered all the time.
    let isLate = false;
    const late = failureOf(hasty.ask('GET', '/b')).finally(() => {
      isLate = true;
    });
    await server.next();
    while (!isLate) {
      const soon = hasty.ask('GET', '/c');
      (await server.next()).answer(200, {});
      await soon;
    }
    expect(await late).to.have.property('message', 'The API server does not answer');
    const euro = Buffer.from('w€\n\n');
    asked.write(euro.subarray(0, 2));
    await until(() => lines.includes('one'), 5, 'the first line is heard');
    asked.write(euro.subarray(2));
    asked.end();
    await following;
    expect(lines).to.deep.equal(['started', 'one', 'tw€']);
  });

  it('repeats a request whose answer is no JSON', async () => {
    const asked = client.ask('GET', '/a');
    const first = await server.next();
    first.write('<html>');
    first.end();
    (await server.next()).answer(200, { n: 1 });
    expect(await asked).to.deep.equal({ n: 1 });
  });

  it('takes an answer that arrived while the process was halted for longer than the time limit', async () => {
    const asked = hasty.ask('GET', '/a');
    const { answer } = await server.next();
    // After an immediate, timers fire before anything is read.
    setImmediate(() => {
      answer(200, { is: 'there' });
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * hastyMs);
    });
    expect(await asked).to.deep.equal({ is: 'there' });
  });

  it('keeps the connection of a stream when another answer is late', async () => {
    const lines: string[] = [];
    const reader = { onStart: () => void lines.push('started'), line: (text: string) => void lines.push(text) };
    const following = hasty.stream('/a', {}, never, reader);
    const second = await server.next();
    second.write('one\n');
    await until(() => lines.includes('one'), 5, 'the other answer goes on');
    const began = performance.now();
    const slow = failureOf(hasty.ask('GET', '/b'));
    const first = await server.next();
    await until(() => performance.now() - began >= 400, 5, 'half of its time has passed');
    first.write('{');
    expect(await slow).to.have.property('message', 'The API server does not answer');
    second.write('two\n');
    second.end();
    await following;
    expect(lines).to.deep.equal(['started', 'one', 'two']);
  });

  it('does not count early hints as an answer', async () => {
    const heard: string[] = [];
    const reader = { onStart: () => void heard.push('started'), line: (text: string) => void heard.push(text) };
    const following = failureOf(hasty.stream('/a', {}, never, reader));
    (await server.next()).sendEarlyHints();
    expect(await following).to.have.property('message', 'The API server does not answer');
    expect(heard).to.deep.equal([]);
  });

  it('ends a stream whose reader throws or whose signal fires, and rejects a refused one', async () => {
    const stop = new AbortController();
    const reader = {
      onStart: () => {},
      line: () => {
        throw new Error('it cannot be read');
      },
    };
    const broken = failureOf(client.stream('/a', {}, never, reader));
    const first = await server.next();
    first.write('one\n');
    expect(await broken).to.have.property('message', 'it cannot be read');
    await until(first.isGone, 5, 'the server hears of it');
    const left = failureOf(client.stream('/b', {}, stop.signal, reader));
    const second = await server.next();
    stop.abort(new Error('enough'));
    expect(await left).to.have.property('message', 'enough');
    await until(second.isGone, 5, 'the server hears of it');
    expect(await failureOf(client.stream('/c', {}, stop.signal, reader)), 'too late').to.have.property(
      'message',
      'enough',
    );
    const refused = failureOf(client.stream('/d', {}, never, reader));
    (await server.next()).answer(410, { reason: 'Expired' });
    expect(await refused).to.include({ status: 410, reason: 'Expired' });
  });

  it('reads credentials again after a minute, and keeps the last ones while that fails', async () => {
    let now = 0;
    let reading: () => string = () => 'first';
    const fresh = rereadAfter(
      60_000,
      async () => reading(),
      () => now,
    );
    expect(await fresh()).to.equal('first');
    reading = () => 'second';
    now = 59_000;
    expect(await fresh()).to.equal('first');
    now = 61_000;
    expect(await fresh()).to.equal('second');
    reading = () => {
      throw new Error('the file is being replaced');
    };
    now = 130_000;
    expect(await fresh()).to.equal('second');
    const never = rereadAfter(60_000, async () => reading());
    expect(await failureOf(never())).to.have.property('message', 'the file is being replaced');
  });
});

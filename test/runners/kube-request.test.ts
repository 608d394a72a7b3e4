import { expect } from 'chai';
import { Agent } from 'undici';
import { sendKubeRequest } from '../../src/runners/kubernetes/kube-request.ts';
import { type FakeApiServer, startFakeApiServer } from '../support/cluster/fake-api-server.ts';

const patient = { timeoutMs: 60_000, onStart: () => {} };

describe('one request to an API server', () => {
  let server: FakeApiServer;
  let agent: Agent;

  beforeEach(async () => {
    server = await startFakeApiServer();
    agent = new Agent({ connections: 1 });
  });
  afterEach(async () => {
    await agent.destroy();
    await server.stop();
  });
  const send = (path: string, signal?: AbortSignal) =>
    sendKubeRequest(agent, { method: 'GET', origin: server.url, path }, { ...patient, signal });

  it('is never sent when it has failed while no connection was free', async () => {
    const first = send('/first');
    const held = await server.next();
    const stop = new AbortController();
    const second = send('/second', stop.signal).catch((error: unknown) => error);
    const third = send('/third');
    stop.abort(new Error('enough'));
    expect(await second).to.have.property('message', 'enough');
    held.answer(200, { is: 'first' });
    expect(await first).to.include({ status: 200, text: '{"is":"first"}' });
    const next = await server.next();
    expect(next.path).to.equal('/third');
    next.answer(200, {});
    await third;
  });
});

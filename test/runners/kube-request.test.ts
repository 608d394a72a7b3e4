import { mock } from 'node:test';
import { expect } from 'chai';
import { Agent } from 'undici';
import { NoAnswerError, sendKubeRequest } from '../../src/runners/kubernetes/kube-request.ts';
import { type FakeApiServer, startFakeApiServer } from '../support/cluster/fake-api-server.ts';
import { failureOf } from '../support/failure.ts';

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

  it('fails once this process has run for the time limit, and no sooner', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const dispatch = () => true;
      const request = { method: 'GET', origin: server.url, path: '/' } as const;
      const late = failureOf(sendKubeRequest(Object.assign(agent, { dispatch }), request, { ...patient }));
      let isLate = false;
      void late.then(() => (isLate = true));
      mock.timers.tick(patient.timeoutMs - 1);
      await new Promise(setImmediate);
      expect(isLate).to.equal(false);
      mock.timers.tick(1);
      expect(await Promise.race([late, new Promise(setImmediate)])).to.be.instanceOf(NoAnswerError);
    } finally {
      mock.timers.reset();
    }
  });
});

import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { type Controller, startController } from '../../src/controller/controller.ts';
import { raisedLimits } from '../support/cluster/cluster.ts';
import { openTestRunner } from '../support/cluster/runner.ts';
import { namespace, type Scene, setScene } from '../support/cluster/scene.ts';
import { aLog } from '../support/redis.ts';

const hour = 3_600_000;
const limits = {
  attempts: 3,
  interruptions: 10,
  queueMilliseconds: 24 * hour,
  storingMilliseconds: 24 * hour,
  jobMilliseconds: hour,
};
const count = 60;

describe('what an attempt costs the API server', function () {
  this.timeout(120_000);
  let scene: Scene;
  let controller: Controller;
  const asked: string[] = [];

  before(async () => {
    scene = await setScene({ flags: raisedLimits });
    const { cluster, store, objects } = scene;
    const { log } = aLog();
    const runner = await openTestRunner({
      ...{ cluster, namespace, log },
      between: (client) => ({
        ...client,
        ask: (method, path, ask) => {
          // What a watch shows late is read, now and then.
          if (method !== 'GET') asked.push(method);
          return client.ask(method, path, ask);
        },
      }),
    });
    controller = await startController({
      ...{ store, limits, objects, log, slots: count, runners: [runner], runnerOf: () => runner },
      metrics: makeMetrics(),
    });
  });
  after(async () => {
    await controller?.close();
    await scene?.stop();
  });

  /** Requests for Jobs, pods and their events that the server counts, by anybody, without lists and watches. What is not found is asked by the fake kubelet alone. */
  async function served(): Promise<number> {
    const text = await scene.cluster.admin.ask<string>('GET', '/metrics');
    return text
      .split('\n')
      .filter((line) => line.startsWith('apiserver_request_total{'))
      .filter(
        (line) => /resource="(jobs|pods|events)"/.test(line) && !/verb="(WATCH|LIST|CONNECT)"|code="404"/.test(line),
      )
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  }

  it('four changes of ours, and at most 17 requests of all who have to do with it', async () => {
    const before = await served();
    const ids = [];
    for (let n = 0; n < count; n++) ids.push(await scene.submit((_, ending) => ({ runMs: 200, ending })));
    await Promise.all(ids.map((id) => scene.ended(id, 60)));
    await scene.cleared(60);
    expect(await scene.wrongs(ids)).to.deep.equal([]);
    const methods = Object.entries(Object.groupBy(asked, (method) => method));
    expect(Object.fromEntries(methods.map(([method, all]) => [method, all?.length]))).to.deep.equal({
      POST: count,
      PATCH: 2 * count,
      DELETE: count,
    });
    expect((await served()) - before).to.be.at.most(17 * count);
  });
});

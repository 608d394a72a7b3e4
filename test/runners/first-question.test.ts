import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { checkCluster } from '../../src/admin/check-cluster.ts';
import { readConfig } from '../../src/base/config.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { openKubernetesWorkers } from '../../src/roles/kubernetes-workers.ts';
import { failureOf } from '../support/failure.ts';
import { aFolder, aLog } from '../support/redis.ts';

/** Times that the client asks each of its questions before it gives up. */
const tries = 3;

describe('the first questions to the API server of a cluster', () => {
  const { folder, remove } = aFolder();
  const env = { KUBECONFIG: join(folder, 'kubeconfig') };
  const address = { host: 'parts.test', port: 8080 };
  const config = {
    ...readConfig({ TRAWL_DATA: folder }),
    ...{ kubeNamespace: 'jobs', workerImage: 'worker:1', gatewayAddress: address, egressAddress: address },
  };
  let server: Server;
  let answer: RequestListener;
  beforeEach(async () => {
    server = createServer((request, response) => answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const clusters = [{ name: 'test', cluster: { server: url, 'insecure-skip-tls-verify': true } }];
    const contexts = [{ name: 'test', context: { cluster: 'test', user: 'test' } }];
    const users = [{ name: 'test', user: {} }];
    writeFileSync(env.KUBECONFIG, JSON.stringify({ clusters, contexts, users, 'current-context': 'test' }));
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });
  after(remove);

  const failToOpen = async (ending: AbortSignal) => {
    const { lines, log } = aLog();
    const open = openKubernetesWorkers({ config, env, now: Date.now, metrics: makeMetrics(), log, ending });
    const failure = await failureOf(open());
    return { lines, message: (failure as Error).message };
  };

  it('end the start of a controller when another program answers them', async () => {
    const ending = new AbortController();
    const asked = new Map<string, number>();
    answer = (request, response) => {
      request.setEncoding('utf8').on('data', (question) => {
        asked.set(question, (asked.get(question) ?? 0) + 1);
        // Asked once more, the start waits.
        if (asked.get(question) === tries + 1) ending.abort();
        response.end('<html>');
      });
    };
    const { lines, message } = await failToOpen(ending.signal);
    expect(message).to.match(/^The API server at http:\/\/127\.0\.0\.1:\d+ cannot be asked: .* is not valid JSON/);
    expect(lines).to.deep.equal([]);
  });

  it('are given up by a controller that is told to end, also in a pause that the API server asked for', async () => {
    const ending = new AbortController();
    answer = (_, response) => {
      response.on('close', () => ending.abort()).writeHead(503, { 'retry-after': '10' });
      response.end('{"message":"not now"}');
    };
    const { message } = await failToOpen(ending.signal);
    expect(message).to.match(/answered with 503|aborted/);
  });

  it('have the doctor name a ClusterRole for the keys of tokens only when the cluster refuses them', async () => {
    const foundWith = async (status: number) => {
      answer = ({ url = '' }, response) => {
        const isOfKeys = url === '/openid/v1/jwks';
        response.writeHead(isOfKeys ? status : 200, { 'content-type': 'application/json' });
        response.end(isOfKeys ? '{"message":"not now"}' : '{"status":{"allowed":true},"items":[]}');
      };
      const findings = await checkCluster(config, env);
      return findings.find(({ about }) => about === 'tokens')?.text ?? '';
    };
    const begins = /^No worker would be let in by the controller: GET \S+ was answered with/;
    expect(await foundWith(403))
      .to.match(begins)
      .and.match(/\. Bind the ClusterRole/);
    expect(await foundWith(404))
      .to.match(begins)
      .and.match(/ 404: not now\.$/);
  });
});

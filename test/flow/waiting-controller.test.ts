import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../support/free-port.ts';
import { aFolder, startTestServer, type TestRecord } from '../support/redis.ts';
import { type RoleProcess, spawnRole } from '../support/role-process.ts';
import { until } from '../support/until.ts';

const away = 'http://127.0.0.1:9';

describe('a controller whose API server is away at its start', () => {
  const { folder, remove } = aFolder();
  let redis: TestRecord;
  let controller: RoleProcess;
  let port: number;
  before(async () => {
    redis = await startTestServer();
  });
  beforeEach(async () => {
    port = await freePort();
    const clusters = [
      { name: 'test', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } },
    ];
    const contexts = [{ name: 'test', context: { cluster: 'test', user: 'test' } }];
    const users = [{ name: 'test', user: {} }];
    const file = join(folder, 'kubeconfig');
    writeFileSync(file, JSON.stringify({ clusters, contexts, users, 'current-context': 'test' }));
    controller = await spawnRole('controller', {
      ...{ TRAWL_SECRET: Buffer.alloc(32, 3).toString('base64'), TRAWL_PUBLIC_URL: 'https://trawl.test' },
      ...{ TRAWL_OBJECTS: 's3', TRAWL_S3_BUCKET: 'files', TRAWL_S3_ENDPOINT: away, TRAWL_INSPECTOR_ADDRESS: away },
      ...{ TRAWL_RUNNER: 'kubernetes', TRAWL_KUBE_NAMESPACE: 'workers', TRAWL_WORKER_IMAGE: 'local.test/worker:1' },
      ...{ TRAWL_GATEWAY_ADDRESS: away, TRAWL_EGRESS_ADDRESS: away, TRAWL_REDIS_URL: redis.url, KUBECONFIG: file },
    });
    await until(
      () => controller.process.exitCode !== null || controller.output().includes('the start waits'),
      60,
      () => `the controller says that it waits: ${controller.output()}`,
    );
  });
  afterEach(() => controller.end('SIGKILL'));
  after(async () => {
    await redis.stop();
    remove();
  });

  it('lives, is not ready and says so, and works once the API server answers', async () => {
    const said = controller.output().match(/^.*the start waits.*$/m)?.[0] ?? '{}';
    expect(JSON.parse(said)).to.include({ level: 'warn', server: `http://127.0.0.1:${port}` });
    expect((await controller.probe('/healthz')).status).to.equal(200);
    const { status, text } = await controller.probe('/readyz');
    expect([status, JSON.parse(text)]).to.deep.equal([503, { ready: false, missing: ['gateway'] }]);
    const server = createServer((request, response) => {
      const isReview = request.url?.endsWith('/selfsubjectaccessreviews');
      response.writeHead(isReview ? 201 : 503, { 'content-type': 'application/json' });
      response.end(isReview ? '{"status":{"allowed":true}}' : '{}');
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    try {
      await until(async () => (await controller.probe('/readyz')).status === 200, 60, 'the controller is ready');
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('ends with exit code 0 when it is told to end while it waits', async () => {
    expect(await controller.end('SIGTERM')).to.equal(0);
  });
});

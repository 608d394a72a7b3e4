import { type AddressInfo, createServer } from 'node:net';
import { expect } from 'chai';
import { startTestServer, type TestRecord } from '../support/redis.ts';
import { spawnRole } from '../support/role-process.ts';

const secret = Buffer.alloc(32, 3).toString('base64');
const away = 'http://127.0.0.1:9';
const apart = {
  ...{ TRAWL_SECRET: secret, TRAWL_PUBLIC_URL: 'https://trawl.test', TRAWL_INSPECTOR_ADDRESS: away },
  ...{ TRAWL_OBJECTS: 's3', TRAWL_S3_BUCKET: 'files', TRAWL_S3_ENDPOINT: away },
};
const inCluster = {
  ...{ TRAWL_RUNNER: 'kubernetes', TRAWL_KUBE_NAMESPACE: 'workers', TRAWL_WORKER_IMAGE: 'local.test/worker:1' },
  ...{ TRAWL_GATEWAY_ADDRESS: away, TRAWL_EGRESS_ADDRESS: away },
};

describe('a role that cannot start', () => {
  let redis: TestRecord;
  before(async () => {
    redis = await startTestServer();
  });
  after(() => redis.stop());

  /** Its output besides the log, a sentence a line. */
  const refused = async (...given: Parameters<typeof spawnRole>): Promise<string[]> => {
    const part = await spawnRole(...given);
    expect(await part.ended, part.output()).to.equal(1);
    const lines = part.output().trim().split('\n');
    return lines.filter((line) => !line.startsWith('{'));
  };

  it('the API names all missing settings at once', async () => {
    expect(await refused('api', {})).to.have.members([
      'TRAWL_REDIS_URL is required here.',
      'TRAWL_SECRET is required here.',
      'TRAWL_PUBLIC_URL is required here.',
      'TRAWL_INSPECTOR_ADDRESS is required here.',
      'TRAWL_OBJECTS must be s3 here: parts that run apart share no folder.',
    ]);
  });

  it('a controller names all missing settings and refuses worker processes', async () => {
    const known = { ...apart, TRAWL_REDIS_URL: redis.url };
    expect(await refused('controller', known)).to.have.members([
      'TRAWL_EGRESS_ADDRESS is required here.',
      'TRAWL_RUNNER must be kubernetes here: worker processes run beside trawl up alone.',
    ]);
  });

  it('a role without Redis names the address it tried', async () => {
    const [sentence, ...others] = await refused('api', { ...apart, TRAWL_REDIS_URL: 'redis://127.0.0.1:9' });
    expect(sentence).to.match(/^Redis cannot be reached at 127\.0\.0\.1:9: /);
    expect(others).to.deep.equal([]);
  });

  it('a controller without a cluster names the cause', async () => {
    const known = { ...apart, ...inCluster, TRAWL_REDIS_URL: redis.url };
    expect(await refused('controller', known)).to.deep.equal([
      'The cluster cannot be found: There is no cluster: KUBECONFIG is not set, and this is no pod of one.',
    ]);
    const [sentence, ...others] = await refused('controller', { ...known, KUBECONFIG: '/nowhere/kubeconfig' });
    expect(sentence).to.match(/^The cluster cannot be found: ENOENT: /);
    expect(others).to.deep.equal([]);
  });

  it('inspector and egress name the wrong setting', async () => {
    expect(await refused('inspector', {})).to.deep.equal(['TRAWL_EGRESS_ADDRESS is required here.']);
    expect(await refused('egress', { TRAWL_WORKERS: 'many', TRAWL_EGRESS_PORTS: 'x' })).to.have.length(2);
  });

  it('an API whose port is taken names the port', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const taken = { ...apart, TRAWL_REDIS_URL: redis.url, TRAWL_PORT: String(port) };
    expect(await refused('api', taken)).to.deep.equal([`The port ${port} is taken by another program`]);
    server.close();
  });
});

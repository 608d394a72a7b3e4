import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import type { ServerAddress } from '../../src/base/server-address.ts';
import { Failed, type Produced } from '../../src/media/tools.ts';
import { readMetadata } from '../../src/model/metadata.ts';
import type { Delivered } from '../../src/model/outcome.ts';
import type { ObjectStore } from '../../src/objects/object-store.ts';
import { openS3 } from '../../src/objects/s3-store.ts';
import { openGatewayClient } from '../../src/worker/gateway-client.ts';
import { uploadFile } from '../../src/worker/upload-file.ts';
import { makeCertificate } from '../support/certificate.ts';
import { startEgress } from '../support/egress.ts';
import { startGateway, type TestGateway, token } from '../support/gateway.ts';
import { aFolder } from '../support/redis.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { type S3Proxy, startS3Proxy } from '../support/s3-proxy.ts';
import { until } from '../support/until.ts';
import { processesOf, startWorker } from '../support/worker.ts';

const partBytes = 5 * 1024 ** 2;
const bytes = 2 * partBytes + 7;
const film = Buffer.alloc(bytes, 'trawl');
const key = 'a-job/1/media.mp4';
const seen = { bytes, checksum: hash('sha256', film) };
const query = 'http://site.example/film';
const nowhere: ServerAddress = { host: '127.0.0.1', port: 9 };

describe('A worker that uploads to S3', () => {
  let s3: TestS3;
  let front: S3Proxy;
  let store: ObjectStore;
  let gateway: TestGateway;
  let folder: string;
  let remove: () => void;
  let permitMs = 0;
  const script = `head -c ${bytes} /dev/zero | tr '\\0' x > media.mp4`;
  const scripted = { bytes, checksum: hash('sha256', Buffer.alloc(bytes, 'x')) };

  before(async () => {
    s3 = await startS3();
  });
  after(() => s3.stop());
  beforeEach(async () => {
    permitMs = 0;
    ({ folder, remove } = aFolder());
    front = await startS3Proxy(s3.settings.s3Endpoint);
    store = open(`http://127.0.0.1:${front.port}`, false);
    gateway = await startGateway({
      folder,
      order: { endpoint: 'video', args: { query, script } },
      limits: { seconds: 150 },
      partBytes,
      permit: async (upload) => {
        await pause(permitMs);
        return store.permit(key, upload);
      },
    });
  });
  afterEach(async () => {
    await store.remove('a-job/');
    expect(await s3.list()).to.deep.equal({ objects: [], uploads: [] });
    await gateway.stop();
    await front.stop();
    remove();
  });

  function open(s3Endpoint: string, isPublic: boolean): ObjectStore {
    return openS3({
      settings: { ...s3.settings, s3Endpoint },
      partBytes,
      throughEgress: async () => isPublic,
    });
  }

  const start = () => startWorker({ folder, gateway: gateway.address, egress: 'http://127.0.0.1:9' });

  /** Uploads the film as an attempt does at its end. */
  async function upload(
    egress: ServerAddress,
    patienceSeconds = 10,
    said: Partial<Produced> = {},
    callSeconds = patienceSeconds,
  ): Promise<Delivered> {
    const file = join(folder, 'media.mp4');
    writeFileSync(file, film);
    const metadata = readMetadata({ title: 'film' });
    if (metadata === null) throw new Error('an object is metadata');
    const what = { bytes, sha256: seen.checksum, content_type: 'video/mp4', ext: 'mp4', ...said };
    const { signal } = new AbortController();
    const own = openGatewayClient(gateway.address, () => token, callSeconds, signal);
    return uploadFile(
      { file, metadata, ...what },
      { gateway: own, egress, folder, partBytes, patienceSeconds, signal },
    );
  }

  it('stores its file in parts, and sends failed parts again', async () => {
    front.fail(500, 'cut', 503, 500, 'cut');
    const worker = start();
    expect(await worker.exit, worker.stderr()).to.deep.equal({ code: 0, signal: null });
    expect(front.uploads()).to.equal(5 + 3);
    expect(gateway.verdicts).to.have.lengthOf(1);
    expect(gateway.verdicts[0]?.delivered).to.include({ key, bytes, sha256: scripted.checksum });
    expect(await store.see(key)).to.equal(null);
    await store.finish(key);
    expect(await store.see(key)).to.deep.equal(scripted);
    expect(worker.stderr()).not.to.match(/X-Amz|AKIA/);
  });

  // A silent connection is given up after half a minute, or after a whole one when its buffers filled meanwhile.
  if (process.env.ROUNDS !== undefined)
    it('sends a part again that S3 never answers', async () => {
      front.fail('hang');
      const worker = start();
      expect(await worker.exit, worker.stderr()).to.deep.equal({ code: 0, signal: null });
      expect(front.uploads()).to.equal(1 + 3);
      await store.finish(key);
      expect(await store.see(key)).to.deep.equal(scripted);
    });

  it('a worker that is killed leaves an upload that the next attempt or the sweep removes', async () => {
    for (const rid of [() => store.remove('a-job/1/'), () => store.sweepTemporary(Date.now() + 60_000)]) {
      front.fail('hang', 'hang', 'hang');
      const uploads = front.uploads();
      const worker = start();
      await until(() => front.uploads() === uploads + 3, 20, 'it uploads');
      worker.process.kill('SIGKILL');
      await worker.exit;
      // Two who remove one folder at once may each leave what the other has begun with.
      await until(() => processesOf(folder).length === 0, 20, 'its cleaner has removed its folder');
      expect(await s3.list()).to.deep.equal({ objects: [], uploads: [key] });
      await rid();
      expect(await s3.list()).to.deep.equal({ objects: [], uploads: [] });
    }
  });

  it('goes on when S3 was away for a while', async () => {
    const restore = await s3.lose();
    const uploaded = upload(nowhere, 30);
    await until(() => gateway.calls.length > 1, 10, 'it asks for a permit again');
    await restore();
    expect(await uploaded).to.include({ key, bytes });
    await store.finish(key);
    expect(await store.see(key)).to.deep.equal(seen);
  });

  it('waits for a permit for longer than S3 may take for one call, because a permit takes several', async () => {
    permitMs = 10_500;
    expect(await upload(nowhere)).to.include({ key, bytes });
    expect(gateway.calls).to.deep.equal(['POST /v1/attempt/permit']);
  });

  it('fails with storage_unavailable when S3 is away for too long', async () => {
    front.fail(...Array.from({ length: 100 }, () => 500));
    const error = await upload(nowhere, 1).catch((error) => error);
    expect(error).to.be.instanceOf(Failed);
    expect([error.code, error.detail]).to.deep.equal([
      'storage_unavailable',
      'Error: The object store answered with 500',
    ]);
  });

  it('gives up after its patience although single calls of the gateway are repeated for longer', async () => {
    const restore = await s3.lose();
    const code = await upload(nowhere, 1, {}, 3_600).catch((error) => error.code);
    await restore();
    expect(code).to.equal('storage_unavailable');
  });

  it('uploads nothing of a file that changed after it was proved', async () => {
    const error = await upload(nowhere, 1, { sha256: hash('sha256', 'another one') }).catch((error) => error);
    expect([error.code, error.detail]).to.deep.equal(['worker_failed', 'the produced file has changed']);
    expect([front.uploads(), gateway.calls]).to.deep.equal([0, []]);
  });

  for (const scheme of ['http', 'https'] as const) {
    it(`reaches S3 with a public ${scheme} address through egress alone`, async () => {
      const trusted = getCACertificates('default');
      const certificate = makeCertificate('localhost');
      const gate = await startS3Proxy(s3.settings.s3Endpoint, scheme === 'https' ? certificate : undefined);
      const egress = await startEgress({ allow: '127.0.0.1:*' });
      try {
        setDefaultCACertificates([...trusted, certificate.cert]);
        store = open(`${scheme}://localhost:${gate.port}`, true);
        expect(await upload(nowhere, 1).catch(({ code }) => code)).to.equal('storage_unavailable');
        expect(gate.uploads()).to.equal(0);
        if (!('port' in egress.address)) return expect.fail('it listens on a port');
        await upload(egress.address);
        expect(gate.uploads()).to.equal(3);
        await until(() => egress.lines.length === 3, 5, 'egress has told of three connections');
        const hosts = egress.lines.map(({ verdict, host, port }) => [verdict, host, port]);
        expect(hosts).to.deep.equal(Array.from({ length: 3 }, () => ['open', 'localhost', gate.port]));
        expect(JSON.stringify(egress.lines)).not.to.match(/X-Amz|media/);
        await store.finish(key);
        expect(await store.see(key)).to.deep.equal(seen);
        await store.remove('a-job/');
      } finally {
        setDefaultCACertificates(trusted);
        store = open(s3.settings.s3Endpoint, false);
        await egress.close();
        await gate.stop();
      }
    });
  }
});

import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { CreateMultipartUploadCommand, ListMultipartUploadsCommand, UploadPartCommand } from '@aws-sdk/client-s3';
import { expect } from 'chai';
import type { ObjectStore, PartsPermit, Permit, Upload } from '../../src/objects/object-store.ts';
import { openS3, partBytesFor } from '../../src/objects/s3-store.ts';
import { send } from '../../src/worker/gateway-client.ts';
import { bodyOf, describeObjectStore, refusalOf, uploadOf } from '../objects/object-store.contract.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { type S3Proxy, startS3Proxy } from '../support/s3-proxy.ts';

/** The least that S3 takes for a part that is not the last. */
const partBytes = 5 * 1024 ** 2;
const content = 'The bytes of a film';
const key = 'job/1/media.mp4';
const shown = { content_type: 'video/mp4', disposition: `attachment; filename="a.mp4"; filename*=UTF-8''%C3%A4.mp4` };

let s3: TestS3;
let store: ObjectStore;

function open(settings = s3.settings): ObjectStore {
  return openS3({ settings, partBytes, throughEgress: async () => false });
}

/** Sends bytes to the first part of a permit, as a worker does. */
async function putPart({ parts: [part] }: PartsPermit, bytes: Buffer): Promise<number> {
  if (part === undefined) return 0;
  const headers = { ...part.headers, 'content-length': String(bytes.length) };
  const { signal } = new AbortController();
  const body = Readable.from([bytes], { objectMode: false });
  return (await send({ to: new URL(part.url), method: 'PUT', headers, body, signal })).status;
}

async function permit(upload: Upload, to = key): Promise<PartsPermit> {
  const permit = await store.permit(to, upload);
  if (permit.is !== 'parts') throw new Error('S3 takes files in parts');
  return permit;
}

/** The upload request of a worker for bytes in parts. */
function inParts(bytes: Buffer): Upload {
  const count = Math.ceil(bytes.length / partBytes);
  const parts = Array.from({ length: count }, (_, n) =>
    hash('sha256', bytes.subarray(n * partBytes, (n + 1) * partBytes)),
  );
  return { bytes: bytes.length, sha256: hash('sha256', bytes), content_type: 'video/mp4', parts };
}

describe('S3 as an object store', () => {
  describeObjectStore(async () => {
    s3 = await startS3();
    const store = open();
    return {
      store,
      upload: async (permit: Permit, body: AsyncIterable<Uint8Array>) => {
        if (permit.is !== 'parts') throw new Error('S3 takes files in parts');
        const status = await putPart(permit, await buffer(body));
        if (status !== 0 && status !== 200) throw new Error(`S3 answered ${status}`);
        await store.finish(permit.key);
      },
      reopen: async () => open(),
      lose: s3.lose,
      stop: s3.stop,
    };
  });
});

describe('an S3 bucket', () => {
  const film = Buffer.concat([Buffer.alloc(partBytes, 'a'), Buffer.alloc(partBytes, 'b'), Buffer.from('the end')]);

  let front: S3Proxy;
  before(async () => {
    s3 = await startS3();
    front = await startS3Proxy(s3.settings.s3Endpoint);
  });
  after(async () => {
    await front.stop();
    await s3.stop();
  });
  beforeEach(() => {
    store = open();
  });
  afterEach(async () => {
    await store.remove('job/');
    expect(await s3.list()).to.deep.equal({ objects: [], uploads: [] });
  });

  /** Stores everything that a permit names. */
  async function putAll(upload: Upload, bytes: Buffer): Promise<void> {
    const permitted = await permit(upload);
    for (const part of permitted.parts) {
      const piece = bytes.subarray(part.start, part.start + part.bytes);
      expect(await putPart({ ...permitted, parts: [part] }, piece)).to.equal(200);
    }
  }

  it('keeps a file of several parts under the checksum of the whole', async () => {
    await putAll(inParts(film), film);
    expect(await store.see(key)).to.equal(null);
    await store.finish(key);
    expect(await store.see(key)).to.deep.equal({ bytes: film.length, checksum: hash('sha256', film) });
    const opened = await store.open(key, shown);
    if (opened?.is !== 'redirect') return expect.fail('S3 answers itself');
    const whole = Buffer.from(await (await fetch(opened.url)).arrayBuffer());
    expect(whole.equals(film)).to.equal(true);
  });

  it('names only the parts that are missing when it is asked again', async () => {
    const upload = inParts(film);
    const first = await permit(upload);
    expect(first.parts.map(({ start, bytes }) => [start, bytes])).to.deep.equal([
      [0, partBytes],
      [partBytes, partBytes],
      [2 * partBytes, 7],
    ]);
    expect(await putPart({ ...first, parts: [first.parts[1]!] }, film.subarray(partBytes, 2 * partBytes))).to.equal(
      200,
    );
    expect((await permit(upload)).parts.map(({ start }) => start)).to.deep.equal([0, 2 * partBytes]);
    expect((await s3.list()).uploads).to.deep.equal([key]);
  });

  it('refuses other bytes of the same length for a part', async () => {
    const upload = uploadOf(content);
    for (const [bytes, status] of [
      [content.toUpperCase(), 400],
      [content.slice(1), 403],
      [`${content}!`, 403],
    ] as const) {
      expect(await putPart(await permit(upload), Buffer.from(bytes))).to.equal(status);
    }
    await store.finish(key);
    expect(await store.see(key)).to.equal(null);
  });

  it('refuses a part without its checksum', async () => {
    const permitted = await permit(uploadOf(content));
    const [part] = permitted.parts;
    expect(await putPart({ ...permitted, parts: [{ ...part!, headers: {} }] }, Buffer.from(content))).to.equal(403);
  });

  it('shows no checksum of a file whose parts are those of another permit', async () => {
    await permit(uploadOf(content));
    const other = 'Other bytes';
    expect(await putPart(await permit(uploadOf(other)), Buffer.from(other))).to.equal(200);
    await store.finish(key);
    expect(await store.see(key)).to.deep.equal({ bytes: other.length, checksum: null });
  });

  it('shows no checksum of a file without its last part', async () => {
    const upload = inParts(film);
    const permitted = await permit(upload);
    expect(await putPart(permitted, film.subarray(0, partBytes))).to.equal(200);
    await store.finish(key);
    expect(await store.see(key)).to.deep.equal({ bytes: partBytes, checksum: null });
  });

  it('refuses the parts of a permit whose prefix was removed', async () => {
    const permitted = await permit(uploadOf(content));
    await store.remove('job/1/');
    expect(await putPart(permitted, Buffer.from(content))).to.equal(404);
    expect(await s3.list()).to.deep.equal({ objects: [], uploads: [] });
  });

  it('keeps a finished file unchanged by a permit that is left over', async () => {
    await putAll(uploadOf(content), Buffer.from(content));
    const late = await permit(uploadOf('Other bytes'));
    await store.finish(key);
    expect(await putPart(late, Buffer.from('Other bytes'))).to.equal(404);
    expect(await store.see(key)).to.deep.equal({ bytes: content.length, checksum: hash('sha256', content) });
  });

  it('finishes the upload that has the parts and aborts an empty one that was begun before it', async () => {
    const upload = inParts(film);
    const place = { Bucket: s3.settings.s3Bucket, Key: key };
    // The answer to a first request was lost: it was repeated, and each has begun an upload.
    const ofParts = hash('sha256', Buffer.from(upload.parts.join(''), 'hex'), 'base64');
    const Metadata = { sha256: upload.sha256, parts: `${ofParts}-${upload.parts.length}` };
    const checksums = { ChecksumAlgorithm: 'SHA256', ChecksumType: 'COMPOSITE' } as const;
    for (let n = 0; n < 2; n++) {
      await s3.client.send(new CreateMultipartUploadCommand({ ...place, Metadata, ...checksums }));
    }
    const { Uploads = [] } = await s3.client.send(new ListMultipartUploadsCommand({ Bucket: place.Bucket }));
    const UploadId = Uploads.at(-1)?.UploadId;
    for (let n = 0; n < upload.parts.length; n++) {
      const Body = film.subarray(n * partBytes, (n + 1) * partBytes);
      const part = { ...place, UploadId, PartNumber: n + 1, Body, ChecksumAlgorithm: 'SHA256' } as const;
      await s3.client.send(new UploadPartCommand(part));
    }
    expect((await permit(upload)).parts).to.deep.equal([]);
    await store.finish(key);
    expect(await store.see(key)).to.deep.equal({ bytes: film.length, checksum: upload.sha256 });
    expect((await s3.list()).uploads).to.deep.equal([]);
  });

  for (const [title, change] of [
    ['parts of another number', { parts: [] }],
    ['a malformed checksum', { parts: ['x'] }],
    ['no checksum', { sha256: '' }],
  ] as const) {
    it(`permits no file with ${title}`, async () => {
      expect(await refusalOf(store.permit(key, { ...uploadOf(content), ...change }))).to.equal('bad_request');
    });
  }

  it('sweeps old uploads and no recent ones', async () => {
    await permit(uploadOf(content));
    expect(await store.sweepTemporary(Date.now() - 60_000)).to.equal(0);
    expect(await store.sweepTemporary(Date.now() + 60_000)).to.equal(1);
    expect((await s3.list()).uploads).to.deep.equal([]);
  });

  it('refuses a file through the gateway', async () => {
    const whole = { is: 'whole', key, bytes: 1, expires_at: 0, signature: '' } as const;
    expect(await refusalOf(store.receive(whole, bodyOf('x')))).to.equal('bad_request');
  });

  it('D68: gives links of 15 minutes that name the file and its type', async () => {
    await putAll(uploadOf(content), Buffer.from(content));
    await store.finish(key);
    const opened = await store.open(key, shown);
    const url = new URL(opened?.is === 'redirect' ? opened.url : '');
    expect(url.searchParams.get('X-Amz-Expires')).to.equal('900');
    const answer = await fetch(url, { headers: { range: 'bytes=4-8' } });
    expect([answer.status, await answer.text()]).to.deep.equal([206, 'bytes']);
    expect(Object.fromEntries(answer.headers)).to.include({
      'content-type': shown.content_type,
      'content-disposition': shown.disposition,
      'cache-control': 'private, no-store',
    });
    url.searchParams.set('response-content-type', 'text/html');
    expect((await fetch(url)).status).to.equal(403);
  });

  it('gives links to its public endpoint, and permits to its internal one', async () => {
    await putAll(uploadOf(content), Buffer.from(content));
    await store.finish(key);
    const s3PublicEndpoint = 'https://files.example';
    const both = open({ ...s3.settings, s3PublicEndpoint });
    const opened = await both.open(key, shown);
    expect(opened?.is === 'redirect' && opened.url).to.match(
      /^https:\/\/files\.example\/trawl-test\/job\/1\/media\.mp4\?/,
    );
    const permitted = await both.permit('job/2/x', uploadOf(content));
    expect(permitted.is === 'parts' && new URL(permitted.parts[0]!.url).origin).to.equal(s3.settings.s3Endpoint);
  });

  it('puts the bucket into the host name unless path style is set', async () => {
    const virtual = openS3({
      settings: { ...s3.settings, s3Endpoint: 'http://s3.test:1', s3PathStyle: false },
      partBytes,
      throughEgress: async () => false,
    });
    const error = await virtual.see(key).catch(({ cause }) => cause.message);
    expect(error).to.contain('trawl-test.s3.test');
  });

  for (const [title, settings] of [
    ['a missing bucket', { s3Bucket: 'trawl-none' }],
    ['an unreachable server', { s3Endpoint: 'http://127.0.0.1:1' }],
  ] as const) {
    it(`with ${title} throws unavailable, and never reports a missing file`, async () => {
      const away = open({ ...s3.settings, ...settings });
      for (const act of [
        () => away.see(key),
        () => away.open(key, shown),
        () => away.finish(key),
        () => away.permit(key, uploadOf(content)),
        () => away.remove('job/'),
        () => away.sweepTemporary(Number.POSITIVE_INFINITY),
      ]) {
        expect(await refusalOf(act())).to.equal('unavailable');
      }
    });
  }

  it('throws unavailable when S3 cannot join the parts for a reason that has nothing to do with them', async () => {
    await putAll(uploadOf(content), Buffer.from(content));
    const through = open({ ...s3.settings, s3Endpoint: `http://127.0.0.1:${front.port}` });
    for (const code of ['KMS.DisabledException', 'RequestTimeout', 'ExpiredToken']) {
      front.failJoins(code);
      expect(await refusalOf(through.finish(key)), code).to.equal('unavailable');
    }
    front.failJoins('InvalidPart');
    await through.finish(key);
    await store.finish(key);
    expect(await store.see(key)).to.deep.include({ bytes: content.length });
  });

  it('has at most 128 parts in a permit, and none below 64 MiB', () => {
    expect(partBytesFor(1)).to.equal(64 * 1024 ** 2);
    for (const bytes of [10 * 1024 ** 3, 10 ** 12])
      expect(Math.ceil(bytes / partBytesFor(bytes))).to.be.within(120, 128);
  });
});

import { expect } from 'chai';
import { refuse } from '../../src/base/errors.ts';
import type { Job } from '../../src/model/job.ts';
import type { ObjectStore } from '../../src/objects/object-store.ts';
import {
  content,
  done,
  expiresAt,
  type FileAnswer,
  linkTo,
  now,
  startFiles,
  type TestFiles,
} from '../support/files.ts';
import { until } from '../support/until.ts';

const link = linkTo(done);
const { sha256 } = done.delivered;

/** An error answer must be like all others. */
function expectError(answer: FileAnswer, status: number, code: string, sentence: string): void {
  expect(answer.status).to.equal(status);
  expect(answer.headers).to.include({ 'x-error-code': code, 'content-type': 'application/json; charset=utf-8' });
  expect(JSON.parse(answer.body)).to.deep.equal({ error: sentence });
}

describe('GET of a result link', () => {
  let files: TestFiles;
  before(async () => {
    files = await startFiles();
  });
  after(() => files.stop());
  beforeEach(() => files.serve(done));

  it('D23: gives the file without a key, as an attachment that no browser runs', async () => {
    const { status, headers, body } = await files.ask(link);
    expect([status, body]).to.deep.equal([200, content]);
    const { date: _, connection: __, 'keep-alive': ___, ...others } = headers;
    expect(others).to.deep.equal({
      'content-type': 'video/mp4',
      'content-length': String(content.length),
      'content-disposition': `attachment; filename="K_se X y.mp4"; filename*=UTF-8''K%C3%A4se%20X%20y.mp4`,
      'accept-ranges': 'bytes',
      etag: `"${sha256}"`,
      'cache-control': 'private, no-store',
      'x-request-id': 'own',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'cross-origin',
      'x-accel-buffering': 'no',
    });
  });

  it('has nginx read a file as fast as its caller does, which is cut off when nginx stores a part and reads nothing for minutes', async () => {
    for (const range of [undefined, 'bytes=0-2']) {
      const { headers } = await files.ask(link, 'GET', range === undefined ? {} : { range });
      expect(headers['x-accel-buffering'], range).to.equal('no');
    }
  });

  it('D68: answers HEAD with the headers of GET and no body', async () => {
    const [got, head] = [await files.ask(link), await files.ask(link, 'HEAD')];
    expect([head.status, head.body]).to.deep.equal([200, '']);
    expect({ ...head.headers, date: '' }).to.deep.equal({ ...got.headers, date: '' });
  });

  for (const [range, first, part] of [
    ['bytes=0-2', 0, 'The'],
    ['bytes=4-8', 4, 'bytes'],
    ['bytes=15-', 15, 'film'],
    ['bytes=-4', 15, 'film'],
    ['bytes=15-1000', 15, 'film'],
    ['bytes=0-18', 0, content],
  ] as const) {
    it(`D68: answers Range ${range} with that part`, async () => {
      const { status, headers, body } = await files.ask(link, 'GET', { range });
      expect([status, body]).to.deep.equal([206, part]);
      expect(headers['content-range']).to.equal(`bytes ${first}-${first + part.length - 1}/${content.length}`);
      expect(headers['content-length']).to.equal(String(part.length));
    });
  }

  for (const range of ['bytes=5-2', 'bytes=x-y', 'lines=1-2', 'bytes=0-0,5-9', `bytes=${'0-0,'.repeat(2000)}1-1`]) {
    it(`D68: answers Range ${range.slice(0, 20)} with the whole file`, async () => {
      const { status, headers, body } = await files.ask(link, 'GET', { range });
      expect([status, body, headers['content-range']]).to.deep.equal([200, content, undefined]);
    });
  }

  it('answers 416 to a Range beyond the end, with the size', async () => {
    const answer = await files.ask(link, 'GET', { range: 'bytes=19-' });
    expectError(answer, 416, 'bad_request', 'Range Not Satisfiable: the file has 19 bytes');
    expect(answer.headers['content-range']).to.equal('bytes */19');
  });

  it('answers a Range with If-Range with the part of the same file, or the whole of another', async () => {
    const same = await files.ask(link, 'GET', { range: 'bytes=15-', 'if-range': `"${sha256}"` });
    expect([same.status, same.body]).to.deep.equal([206, 'film']);
    const other = await files.ask(link, 'GET', { range: 'bytes=15-', 'if-range': '"other"' });
    expect([other.status, other.body]).to.deep.equal([200, content]);
  });

  it('ignores Range for HEAD', async () => {
    const { status, headers } = await files.ask(link, 'HEAD', { range: 'bytes=0-1' });
    expect([status, headers['content-length']]).to.deep.equal([200, String(content.length)]);
  });

  it('answers 304 to If-None-Match with the ETag of the file', async () => {
    for (const method of ['GET', 'HEAD']) {
      const { status, body, headers } = await files.ask(link, method, { 'if-none-match': `"${sha256}"` });
      expect([status, body, headers.etag]).to.deep.equal([304, '', `"${sha256}"`]);
    }
  });

  it('D85: ignores further parameters that are not signed', async () => {
    const { status, body } = await files.ask(`${link}&x_api_key=k&fields=a&soft_fail=true`);
    expect([status, body]).to.deep.equal([200, content]);
  });

  it('sends a content type that no job delivers as application/octet-stream', async () => {
    const job = { ...done, delivered: { ...done.delivered, content_type: 'text/html' } };
    files.serve(job);
    expect((await files.ask(linkTo(job))).headers['content-type']).to.equal('application/octet-stream');
  });

  it('D68: redirects GET to a store that signs links of its own, and answers HEAD itself', async () => {
    const url = 'https://files.example.com/media.mp4?X-Amz-Signature=1';
    const elsewhere: Pick<ObjectStore, 'see' | 'open'> = {
      see: files.objects.see,
      open: async () => ({ is: 'redirect', url }),
    };
    files.serve(done, { objects: elsewhere });
    const { status, headers, body } = await files.ask(link, 'GET', { range: 'bytes=0-1' });
    expect([status, body]).to.deep.equal([307, '']);
    expect(headers).to.include({ location: url, 'cache-control': 'private, no-store', 'x-request-id': 'own' });
    expect((await files.ask(link, 'HEAD')).status).to.equal(200);
  });
});

describe('a result link that opens nothing', () => {
  let files: TestFiles;
  before(async () => {
    files = await startFiles();
  });
  after(() => files.stop());

  const other = linkTo({ ...done, id: '22222222-2222-4333-8444-555555555555' });
  const gone = 'Gone: the file was removed';
  const lost = { ...done, delivered: { ...done.delivered, key: 'job/2/media.mp4' } };
  const rows: [title: string, job: Job | null, asked: string, status: number, code: string, sentence: string][] = [
    ['because another name is in it', done, link.replace('se', 'so'), 403, 'forbidden', 'Forbidden'],
    ['because its time was altered', done, link.replace('exp=1', 'exp=9'), 403, 'forbidden', 'Forbidden'],
    ['because its signature was altered', done, `${link}A`, 403, 'forbidden', 'Forbidden'],
    ['because it is signed for another job', done, link.replace(/[^/]+(?=\/K)/, '0'), 403, 'forbidden', 'Forbidden'],
    ['because it is not signed', done, link.split('?')[0]!, 403, 'forbidden', 'Forbidden'],
    ['because the job is not in the record any more', null, link, 410, 'not_found', gone],
    ['because its job does not exist', done, other, 410, 'not_found', gone],
    ['because its file was removed', { ...done, removed_at: now }, link, 410, 'not_found', gone],
    ['because the job has no file', { ...done, delivered: null }, link, 410, 'not_found', gone],
    ['because its file is lost', lost, link, 410, 'not_found', 'Gone: the file is not there any more'],
  ];
  for (const [title, job, asked, status, code, sentence] of rows) {
    it(`D85: ${title}, is answered with ${status}`, async () => {
      files.serve(job);
      expectError(await files.ask(asked), status, code, sentence);
      expect(await files.ask(asked, 'HEAD')).to.include({ status, body: '' });
    });
  }

  it('D85: because it has expired, is answered with 410', async () => {
    files.serve(done, { now: () => expiresAt });
    expectError(await files.ask(link), 410, 'not_found', 'Gone: this link has expired');
  });

  it('is answered with 503 while the record or the storage cannot be reached', async () => {
    const away = async () => {
      throw refuse('unavailable');
    };
    files.serve(done, { readJob: away });
    expectError(await files.ask(link), 503, 'unavailable', 'Service Unavailable');
    files.serve(done, { objects: { see: away, open: away } });
    for (const method of ['GET', 'HEAD']) expect((await files.ask(link, method)).status).to.equal(503);
  });

  it('because its file has another size than the delivered one, is answered with 500', async () => {
    const job = { ...done, delivered: { ...done.delivered, bytes: content.length - 1 } };
    files.serve(job);
    expectError(await files.ask(link), 500, 'internal_error', 'Internal Error');
    await until(() => files.countOpen() === 0, 1, 'the file is closed');
  });
});

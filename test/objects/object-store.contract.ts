import { hash, randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { Refusal } from '../../src/base/errors.ts';
import type { ByteRange } from '../../src/model/byte-range.ts';
import type { ObjectStore, OpenedObject, Permit, Upload } from '../../src/objects/object-store.ts';

export interface StoreUnderTest {
  readonly store: ObjectStore;
  /** Uploads a body as a worker does, and finishes it as the controller does. */
  readonly upload: (permit: Permit, body: AsyncIterable<Uint8Array>) => Promise<unknown>;
  /** The same storage as a program sees it that starts anew. */
  readonly reopen: () => Promise<ObjectStore>;
  /** Makes the storage unreachable, until the function that it gives is called. */
  readonly lose: () => Promise<() => Promise<void>>;
  readonly stop: () => Promise<void>;
}

const content = 'The bytes of a film';
const shown = { content_type: 'video/mp4', disposition: 'attachment' };
const seen = { bytes: content.length, checksum: hash('sha256', content) };

const unfit: [title: string, key: string][] = [
  ['that is empty', ''],
  ['of one name alone', 'job'],
  ['of six names', 'job/1/2/3/4/5'],
  ['with a step up', 'job/../../x'],
  ['with a step nowhere', 'job/./x'],
  ['that is hidden', 'job/.x'],
  ['that begins with a slash', '/job/1/x'],
  ['that ends with a slash', 'job/1/'],
  ['with two slashes', 'job//x'],
  ['with a backslash', 'job\\1/x'],
  ['with a capital letter', 'job/1/X'],
  ['with a space', 'job/1/a b'],
  ['with a NUL', 'job/1/a\0'],
  ['with a line end', 'job/1/a\n'],
  ['with percent-encoding', 'job/%2e%2e/x'],
  ['with a letter beyond ASCII', 'job/1/ä'],
  ['of the uploads', '.uploads/a/b'],
  ['that is too long', `job/1/${'a'.repeat(200)}`],
];

const ranges: [title: string, ByteRange | undefined, string][] = [
  ['as a whole', undefined, content],
  ['from its beginning', { first: 0, last: 2 }, 'The'],
  ['in its middle', { first: 4, last: 8 }, 'bytes'],
  ['to its end', { first: 15, last: content.length - 1 }, 'film'],
  ['by one byte', { first: 0, last: 0 }, 'T'],
];

/** The upload request of a worker for a text in one part. */
export function uploadOf(text: string): Upload {
  const sha256 = hash('sha256', text);
  return { bytes: Buffer.byteLength(text), sha256, content_type: 'video/mp4', parts: [sha256] };
}

/** A body of some text in small pieces. */
export async function* bodyOf(text: string, pieceBytes = 5): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

/** A body whose sender goes away. */
export async function* brokenBody(text: string): AsyncGenerator<Uint8Array> {
  yield* bodyOf(text);
  throw new Error('the sender has gone');
}

/** The refusal that a promise must end with. */
export async function refusalOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => 'nothing was refused',
    (error: unknown) => error,
  );
  if (error instanceof Refusal) return error.code;
  throw error;
}

/** Reads an opened object, or the same part of it again. */
export async function read(opened: OpenedObject | null, range?: ByteRange): Promise<string | null> {
  if (opened === null) return null;
  if (opened.is === 'stream') return text(opened.stream);
  const headers = range ? { range: `bytes=${range.first}-${range.last}` } : undefined;
  return (await fetch(opened.url, { headers })).text();
}

/** The contract of every object store. */
export function describeObjectStore(open: () => Promise<StoreUnderTest>): void {
  let under: StoreUnderTest;
  let store: ObjectStore;
  let job: string;
  let key: string;

  before(async () => {
    under = await open();
    store = under.store;
  });
  after(() => under.stop());
  beforeEach(() => {
    job = randomUUID();
    key = `${job}/1/media.mp4`;
  });

  async function put(key: string): Promise<void> {
    await under.upload(await store.permit(key, uploadOf(content)), bodyOf(content));
  }

  it('has nothing where nothing was uploaded', async () => {
    expect(await store.see(key)).to.equal(null);
    expect(await store.open(key, shown)).to.equal(null);
    await put(key);
    for (const other of [`${job}/1/media.mp`, `${job}/2/media.mp4`, `${job}/1`, `${key}/${seen.checksum}`]) {
      expect(await store.see(other)).to.equal(null);
      expect(await store.open(other, shown)).to.equal(null);
    }
  });

  it('gives permits that are plain text and let upload', async () => {
    const permit = JSON.parse(JSON.stringify(await store.permit(key, uploadOf(content))));
    await under.upload(permit, bodyOf(content));
    expect(await store.see(key)).to.deep.equal(seen);
  });

  it('knows size and checksum after it was opened anew', async () => {
    await put(key);
    expect(await (await under.reopen()).see(key)).to.deep.equal(seen);
  });

  for (const [title, range, wanted] of ranges) {
    it(`opens an object ${title}`, async () => {
      await put(key);
      const opened = await store.open(key, shown, range);
      if (opened?.is === 'stream') expect(opened.bytes).to.equal(content.length);
      expect(await read(opened, range)).to.equal(wanted);
    });
  }

  it('takes the same upload twice', async () => {
    await put(key);
    await put(key);
    expect(await store.see(key)).to.deep.equal(seen);
  });

  it('has nothing of an upload that breaks off', async () => {
    const permit = await store.permit(key, uploadOf(content));
    await under.upload(permit, brokenBody(content.slice(0, 10))).then(
      () => expect.fail('it did not break off'),
      (error) => expect(error).to.be.an('error'),
    );
    expect(await store.see(key)).to.equal(null);
    await under.upload(permit, bodyOf(content));
    expect(await store.see(key)).to.deep.equal(seen);
  });

  for (const [title, body] of [
    ['a shorter body', content.slice(1)],
    ['a longer body', `${content}!`],
    ['no body', ''],
  ] as const) {
    it(`has nothing after ${title} than was permitted`, async () => {
      const permit = await store.permit(key, uploadOf(content));
      await under.upload(permit, bodyOf(body)).then(
        () => expect.fail('it was taken'),
        (error) => expect(error).to.be.an('error'),
      );
      expect(await store.see(key)).to.equal(null);
    });
  }

  it('never tells the permitted checksum of other bytes', async () => {
    const permit = await store.permit(key, uploadOf(content));
    // Either they are refused, or what is kept is seen to be something else.
    await under.upload(permit, bodyOf(content.toUpperCase())).catch(() => 'refused');
    expect((await store.see(key))?.checksum).not.to.equal(seen.checksum);
  });

  it('keeps bytes of our own, which can be read as one', async () => {
    expect(await store.read(key)).to.equal(null);
    await store.keep(key, Buffer.from(content));
    await store.keep(key, Buffer.from(content));
    expect(await store.see(key)).to.deep.equal(seen);
    expect((await store.read(key))?.toString()).to.equal(content);
    expect(await read(await store.open(key, shown))).to.equal(content);
  });

  it('keeps what is there when other bytes of our own come under its key', async () => {
    await store.keep(key, Buffer.from(content));
    await store.keep(key, Buffer.from('Other bytes'));
    expect(await store.see(key)).to.deep.equal(seen);
    expect((await store.read(key))?.toString()).to.equal(content);
  });

  it('keeps one of two that come under a key at once', async () => {
    const texts = ['The bytes of the one', 'What the other has'];
    await Promise.all(texts.map((text) => store.keep(key, Buffer.from(text))));
    expect(texts).to.include((await store.read(key))?.toString());
  });

  it('finishes nothing where nothing was begun', async () => {
    await store.finish(key);
    expect(await store.see(key)).to.equal(null);
  });

  for (const bytes of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    it(`permits no ${bytes} bytes`, async () => {
      expect(await refusalOf(store.permit(key, { ...uploadOf('x'), bytes }))).to.equal('bad_request');
    });
  }

  it('removes what is under a prefix, again and again, and nothing else', async () => {
    const others = [`${job}/11/media.mp4`, `${job}1/1/media.mp4`, `${job}/2/1/media.mp4`];
    for (const one of [key, `${job}/1/cover.jpg`, `${job}/1/2/3/4`, ...others]) await put(one);
    await store.remove(`${job}/1/`);
    await store.remove(`${job}/1/`);
    for (const gone of [key, `${job}/1/cover.jpg`, `${job}/1/2/3/4`]) expect(await store.see(gone)).to.equal(null);
    for (const other of others) expect(await store.see(other)).to.deep.equal(seen);
    await store.remove(`${job}/`);
    expect(await store.see(others[0]!)).to.equal(null);
    expect(await store.see(others[1]!)).to.deep.equal(seen);
  });

  it('lists the first name of every key, or the next one behind a prefix, once', async () => {
    const [one, other] = [randomUUID(), randomUUID()];
    for (const key of [`${one}/1/a.mp4`, `${one}/2/a.mp4`, `${other}/1/a.mp4`, 'days/paid/x/0/lines.gz'])
      await store.keep(key, Buffer.from(content));
    const names: string[] = [];
    for await (const page of store.listNames()) names.push(...page);
    expect(names.filter((name) => [one, other, 'days'].includes(name)).toSorted()).to.deep.equal(
      [one, other, 'days'].toSorted(),
    );
    expect(new Set(names).size).to.equal(names.length);
    const below: string[] = [];
    for await (const page of store.listNames(`${one}/`)) below.push(...page);
    expect(below.toSorted()).to.deep.equal(['1', '2']);
    for await (const page of store.listNames(`${randomUUID()}/`)) expect(page).to.deep.equal([]);
    for (const prefix of [`${one}/`, `${other}/`, 'days/']) await store.remove(prefix);
  });

  it('removes nothing where nothing is', async () => {
    await put(key);
    await store.remove(`${randomUUID()}/`);
    await store.remove(`${job}/1/2/3/`);
    expect(await store.see(key)).to.deep.equal(seen);
  });

  it('lets an object be uploaded again after it was removed', async () => {
    await put(key);
    await store.remove(`${job}/`);
    await put(key);
    expect(await store.see(key)).to.deep.equal(seen);
  });

  for (const [title, key] of unfit) {
    it(`keeps nothing under a key ${title}`, async () => {
      expect(await refusalOf(store.permit(key, uploadOf('x')))).to.equal('bad_request');
      expect(await store.see(key)).to.equal(null);
      expect(await store.open(key, shown)).to.equal(null);
    });
  }

  for (const prefix of ['', '/', './', '../', 'job', 'job/1', 'job/../', 'job//', '.uploads/', 'job/1/2/3/4/', '*/']) {
    it(`removes nothing under ${JSON.stringify(prefix)}`, async () => {
      const error = await store.remove(prefix).catch((error) => error);
      expect(error)
        .to.be.an('error')
        .with.property('message', `${JSON.stringify(prefix)} is not what keys begin with`);
    });
  }

  it('says so when it cannot be reached, and never that nothing is there', async () => {
    await put(key);
    const permit = await store.permit(`${job}/1/other.mp4`, uploadOf(content));
    const restore = await under.lose();
    try {
      expect(await refusalOf(store.see(key))).to.equal('unavailable');
      expect(await refusalOf(store.see(`${job}/1/none`))).to.equal('unavailable');
      expect(await refusalOf(store.open(key, shown))).to.equal('unavailable');
      expect(await refusalOf(store.read(key))).to.equal('unavailable');
      expect(await refusalOf(store.keep(key, Buffer.from(content)))).to.equal('unavailable');
      expect(await refusalOf(store.remove(`${job}/`))).to.equal('unavailable');
      await under.upload(permit, bodyOf(content)).then(
        () => expect.fail('it was taken'),
        (error) => expect(error).to.be.an('error'),
      );
    } finally {
      await restore();
    }
    expect(await store.see(key)).to.deep.equal(seen);
    expect(await store.see(permit.key)).to.equal(null);
  });
}

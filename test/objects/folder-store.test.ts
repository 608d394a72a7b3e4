import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import type { WholePermit } from '../../src/objects/object-store.ts';
import { until } from '../support/until.ts';
import { bodyOf, brokenBody, describeObjectStore, read, refusalOf } from './object-store.contract.ts';

const seal = makeSeal({ secret: Buffer.alloc(32) });
const content = 'The bytes of a film';
const checksum = hash('sha256', content);
const key = 'job/1/media.mp4';

let parent: string;
let folder: string;
let store: FolderStore;
let now: number;

async function openAnew(): Promise<FolderStore> {
  parent = mkdtempSync(join(tmpdir(), 'objects-'));
  folder = join(parent, 'objects');
  now = 1000;
  return openFolder({ folder, seal, now: () => now });
}

async function put(body = content, to = key): Promise<unknown> {
  return store.receive(await store.permit(to, { bytes: body.length }), bodyOf(body));
}

function listUploads(): Promise<string[]> {
  return readdir(join(folder, '.uploads'));
}

function removeParent(): void {
  rmSync(parent, { recursive: true, force: true });
}

describe('the folder as an object store', () => {
  describeObjectStore(async () => {
    const store = await openAnew();
    const [here, away] = [folder, `${folder}-away`];
    return {
      store,
      upload: async (permit, body) => {
        if (permit.is !== 'whole') throw new Error('a folder takes files whole');
        await store.receive(permit, body);
        await store.finish(permit.key);
      },
      reopen: () => openFolder({ folder: here, seal, now: () => 0 }),
      lose: async () => {
        await rename(here, away);
        return () => rename(away, here);
      },
      stop: async () => removeParent(),
    };
  });
});

describe('an object folder', () => {
  beforeEach(async () => {
    store = await openAnew();
  });
  afterEach(removeParent);

  it('keeps an object as one file that only its owner may read', async () => {
    expect(await put()).to.deep.equal({ bytes: content.length, checksum });
    const path = join(folder, key, checksum);
    expect(await readFile(path, 'utf8')).to.equal(content);
    expect((await stat(path)).mode & 0o777).to.equal(0o600);
    expect((await stat(folder)).mode & 0o777).to.equal(0o700);
    expect(await listUploads()).to.deep.equal([]);
  });

  it('may itself be reached over a link', async () => {
    await put();
    await symlink(folder, join(parent, 'link'));
    const over = await openFolder({ folder: join(parent, 'link'), seal, now: () => now });
    expect(await over.see(key)).to.deep.equal({ bytes: content.length, checksum });
  });

  it('never changes an object: another one under its key is refused', async () => {
    await put();
    expect(await refusalOf(put('Other bytes'))).to.equal('already_exists');
    expect(await read(await store.open(key))).to.equal(content);
    expect(await listUploads()).to.deep.equal([]);
  });

  it('replaces an object from before the time that the upload names, and no other', async () => {
    await put();
    const { mtimeMs } = await stat(join(folder, key));
    const replace = async (body: string, before: number) =>
      store.receive(await store.permit(key, { bytes: body.length }), bodyOf(body), before);
    expect(await refusalOf(replace('Other bytes', mtimeMs))).to.equal('already_exists');
    const opened = await store.open(key);
    expect(await replace('Other bytes', mtimeMs + 1)).to.include({ checksum: hash('sha256', 'Other bytes') });
    expect(await read(opened)).to.equal(content);
    expect(await readdir(join(folder, key))).to.deep.equal([hash('sha256', 'Other bytes')]);
    expect(await listUploads()).to.deep.equal([]);
  });

  it('keeps one of two different uploads that arrive at once, and it is whole', async () => {
    const bodies = ['first', 'other'];
    const ends = await Promise.allSettled(bodies.map((body) => put(body)));
    expect(ends.map(({ status }) => status).sort()).to.deep.equal(['fulfilled', 'rejected']);
    const kept = bodies[ends.findIndex(({ status }) => status === 'fulfilled')]!;
    expect(await store.see(key)).to.deep.equal({ bytes: 5, checksum: hash('sha256', kept) });
    expect(await read(await store.open(key))).to.equal(kept);
  });

  it('does not take a removed object away from who is reading it', async () => {
    await put();
    const opened = await store.open(key);
    await store.remove('job/');
    expect(await read(opened)).to.equal(content);
  });

  const changes: [title: string, change: (permit: WholePermit) => unknown][] = [
    ['another key', (permit) => ({ ...permit, key: 'job/2/media.mp4' })],
    ['a key that is no text', (permit) => ({ ...permit, key: [permit.key] })],
    ['more bytes', (permit) => ({ ...permit, bytes: permit.bytes + 1 })],
    ['bytes that are text', (permit) => ({ ...permit, bytes: String(permit.bytes) })],
    ['more time', (permit) => ({ ...permit, expires_at: permit.expires_at + 1 })],
    ['an altered signature', (permit) => ({ ...permit, signature: `${permit.signature}A` })],
    ['no signature', ({ signature: _, ...rest }) => rest],
    ['nothing in it', () => ({})],
    [
      'the signature of a link',
      (permit) => ({ ...permit, signature: seal.sign('link', JSON.stringify([permit.key])) }),
    ],
  ];
  const escaping = JSON.stringify(['../../x', 1, 2000]);
  changes.push([
    'a path for a key, even when it is signed',
    () => ({ is: 'whole', key: '../../x', bytes: 1, expires_at: 2000, signature: seal.sign('permit', escaping) }),
  ]);
  for (const [title, change] of changes) {
    it(`refuses a permit with ${title} and reads no body`, async () => {
      const permit = change(await store.permit(key, { bytes: content.length })) as WholePermit;
      let asked = false;
      const body = (async function* () {
        asked = true;
        yield Buffer.from(content);
      })();
      expect(await refusalOf(store.receive(permit, body))).to.equal('forbidden');
      expect(asked).to.equal(false);
      expect(await readdir(folder)).to.deep.equal(['.uploads']);
    });
  }

  it('refuses a permit after an hour', async () => {
    const permit = await store.permit(key, { bytes: content.length });
    now += 3_600_000;
    expect(await refusalOf(store.receive(permit, bodyOf(content)))).to.equal('forbidden');
    now -= 1;
    expect(await store.receive(permit, bodyOf(content))).to.deep.equal({ bytes: content.length, checksum });
  });

  it('says what is wrong with a body of another length, and keeps nothing of it', async () => {
    const permit = await store.permit(key, { bytes: 10 });
    expect(await refusalOf(store.receive(permit, bodyOf(content)))).to.equal('payload_too_large');
    expect(await refusalOf(store.receive(permit, bodyOf('short')))).to.equal('bad_request');
    expect(await readdir(folder)).to.deep.equal(['.uploads']);
    expect(await listUploads()).to.deep.equal([]);
  });

  it('reads no more of a body than one piece beyond the permit', async () => {
    let pieces = 0;
    const body = (async function* () {
      for (; pieces < 1000; pieces += 1) yield Buffer.alloc(10);
    })();
    expect(await refusalOf(store.receive(await store.permit(key, { bytes: 25 }), body))).to.equal('payload_too_large');
    expect(pieces).to.equal(2);
  });

  it('sweeps uploads that nothing was written to for some time, and no others', async () => {
    for (const name of ['old', 'new', 'slow']) {
      await mkdir(join(folder, '.uploads', name));
      await writeFile(join(folder, '.uploads', name, 'body'), 'x');
    }
    const hourAgo = new Date(Date.now() - 3_600_000);
    for (const name of ['old/body', 'old', 'slow']) await utimes(join(folder, '.uploads', name), hourAgo, hourAgo);
    await put();
    expect(await store.sweepTemporary(Date.now() - 60_000)).to.equal(1);
    expect((await listUploads()).sort()).to.deep.equal(['new', 'slow']);
    expect(await store.sweepTemporary(Number.POSITIVE_INFINITY)).to.equal(2);
    expect(await store.see(key)).to.deep.equal({ bytes: content.length, checksum });
  });

  it('tells an empty folder in its place from its own, as where a disk is not mounted', async () => {
    await put();
    await rename(folder, `${folder}-away`);
    await mkdir(folder);
    expect(await refusalOf(store.see(key))).to.equal('unavailable');
    expect(await refusalOf(store.open(key))).to.equal('unavailable');
    expect(await refusalOf(store.remove('job/'))).to.equal('unavailable');
    expect(await refusalOf(store.sweepTemporary(Number.POSITIVE_INFINITY))).to.equal('unavailable');
    expect(await refusalOf(put())).to.equal('unavailable');
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it('leaves no file open, whatever happens', async () => {
    await put();
    const before = (await readdir('/proc/self/fd')).length;
    for (let round = 0; round < 50; round += 1) {
      const opened = await store.open(key);
      if (opened?.is === 'stream') opened.stream.destroy();
      await refusalOf(put('Other bytes'));
      await put(content, `job/${round}/x`);
      await store.receive(await store.permit('job/1/y', { bytes: 9 }), brokenBody('y')).catch(() => 'as it should be');
      await store.see('job/1/none');
    }
    // A stream that is destroyed closes its file a moment later.
    await until(async () => (await readdir('/proc/self/fd')).length === before, 1, `${before} files are open again`);
  });
});

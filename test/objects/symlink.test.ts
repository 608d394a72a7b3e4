import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { bodyOf } from './object-store.contract.ts';

const content = 'The bytes of a film';
const checksum = hash('sha256', content);
const key = 'job/1/media.mp4';

let parent: string;
let folder: string;
let store: FolderStore;

async function put(body = content, to = key): Promise<unknown> {
  return store.receive(await store.permit(to, { bytes: body.length }), bodyOf(body));
}

describe('symbolic links in an object folder', () => {
  let outside: string;

  beforeEach(async () => {
    parent = mkdtempSync(join(tmpdir(), 'objects-'));
    folder = join(parent, 'objects');
    store = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
    outside = join(parent, 'outside');
    await mkdir(join(outside, '1', 'media.mp4'), { recursive: true });
    await writeFile(join(outside, '1', 'media.mp4', checksum), content);
  });
  afterEach(async () => {
    expect(await readFile(join(outside, '1', 'media.mp4', checksum), 'utf8')).to.equal(content);
    expect(await readdir(outside, { recursive: true })).to.have.length(3);
    rmSync(parent, { recursive: true });
  });

  for (const [title, from, to] of [
    ['in the place of a folder', 'job', '.'],
    ['in the place of the last folder', 'job/1', '1'],
    ['in the place of an object', 'job/1/media.mp4', '1/media.mp4'],
  ] as const) {
    it(`${title} are not followed`, async () => {
      await mkdir(join(folder, from, '..'), { recursive: true });
      await symlink(join(outside, to), join(folder, from));
      for (const act of [() => store.see(key), () => store.open(key)]) {
        expect(await act().catch(({ message }) => message)).to.match(/leads over a link$/);
      }
      expect(await put().catch((error) => error)).to.be.an('error');
      await store.remove('job/');
      expect(await store.see(key)).to.equal(null);
    });
  }

  it('stop a removal when they stand above its prefix', async () => {
    await symlink(outside, join(folder, 'job'));
    expect(await store.remove('job/1/').catch(({ message }) => message)).to.match(/leads over a link$/);
    expect(await put(content, 'job/2/x').catch(({ message }) => message)).to.match(/is not a folder$/);
  });

  it('count as no object when they stand in the place of its file', async () => {
    await mkdir(join(folder, key), { recursive: true });
    await symlink(join(outside, '1', 'media.mp4', checksum), join(folder, key, checksum));
    expect(await store.see(key)).to.equal(null);
    expect(await store.open(key)).to.equal(null);
  });

  it('are not swept when they stand in the place of the uploads folder', async () => {
    await rm(join(folder, '.uploads'), { recursive: true });
    await symlink(outside, join(folder, '.uploads'));
    expect(await store.sweepTemporary(Number.POSITIVE_INFINITY).catch(({ message }) => message)).to.match(
      /leads over a link$/,
    );
    expect(await put().catch(({ message }) => message)).to.match(/leads over a link$/);
  });
});

import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeFolder } from '../../src/base/make-folder.ts';
import { aFolder } from '../support/redis.ts';
import { read } from '../support/tree.ts';
import { files } from '../support/tree-files.ts';

describe('a folder that is made with those above it', () => {
  const { folder: home, remove } = aFolder();
  after(remove);
  const failure = (path: string) =>
    makeFolder(path).then(
      () => 'made',
      ({ code }: NodeJS.ErrnoException) => code,
    );

  it('has one mode at every level, and keeps the mode of one that is there', async () => {
    const deep = join(home, 'a', 'b', 'c');
    await makeFolder(deep, 0o700);
    for (const path of [deep, join(home, 'a')]) expect(statSync(path).mode & 0o777).to.equal(0o700);
    await makeFolder(`${deep}/`, 0o755);
    expect(statSync(deep).mode & 0o777).to.equal(0o700);
  });

  it('may be made by many at once', async () => {
    await Promise.all(Array.from({ length: 20 }, () => makeFolder(join(home, 'x', 'y', 'z'))));
    expect(statSync(join(home, 'x', 'y', 'z')).isDirectory()).to.equal(true);
  });

  it('is refused below a file, over a file and behind a link to nothing', async () => {
    writeFileSync(join(home, 'file'), '');
    symlinkSync(join(home, 'nowhere'), join(home, 'link'));
    mkdirSync(join(home, 'there'));
    expect(await failure(join(home, 'file', 'x', 'y'))).to.equal('ENOTDIR');
    expect(await failure(join(home, 'file'))).to.equal('EEXIST');
    expect(await failure(join(home, 'link', 'x'))).to.equal('EEXIST');
    expect(await failure(join(home, 'there'))).to.equal('made');
  });

  it('is refused where the system lets no folder be made although its parent is there', async () => {
    for (const path of ['/proc/no-process', '/proc/no-process/x']) expect(await failure(path)).to.equal('ENOENT');
  });

  it('is made by no recursive mkdir, which would never end there', () => {
    const programs = files.filter((path) => /^src\/.*\.ts$/.test(path) && path !== 'src/admin/write-docs.ts');
    const recursive = programs.filter((path) => /\bmkdir(Sync)?\([^;]*recursive: true/.test(read(path)));
    expect(recursive).to.deep.equal([]);
  });
});

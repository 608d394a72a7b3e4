import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { makePartialFile } from '../../src/client/partial-file.ts';
import { aFolder } from '../support/redis.ts';

describe('the place of a file that trawl get fetches', () => {
  let parent: string;
  let remove: () => void;
  before(() => {
    ({ folder: parent, remove } = aFolder());
  });
  after(() => remove());

  it('may have the longest name that a file system takes', async () => {
    const folder = mkdtempSync(join(parent, 'placed-'));
    for (const name of [`${'n'.repeat(251)}.mp4`, `${'é'.repeat(125)}e.mp4`]) {
      const placed = await makePartialFile(join(folder, name));
      expect(placed.partPath).to.match(/\.part$/);
      writeFileSync(placed.partPath, '');
      expect(await placed.finish()).to.equal(join(folder, name));
      expect(readdirSync(folder)).to.include(name).and.not.include(placed.partPath);
    }
    expect(readdirSync(folder)).to.have.length(2);
  });

  it('has a number in the longest name, too, when that is taken by a file or by downloads beside it', async () => {
    for (const [stem, ext] of [
      ['n'.repeat(251), '.mp4'],
      ['é'.repeat(125), '.mp4'],
      ['n', `.${'x'.repeat(253)}`],
    ] as const) {
      const folder = mkdtempSync(join(parent, 'placed-'));
      const wanted = join(folder, stem + ext);
      writeFileSync(wanted, 'of somebody else');
      const placed = [];
      for (let n = 0; n < 12; n++) placed.push(await makePartialFile(wanted));
      for (const { partPath } of placed) writeFileSync(partPath, '');
      const paths = [];
      for (const { finish } of placed) paths.push(await finish());
      expect(readdirSync(folder).sort()).to.deep.equal([wanted, ...paths].map((path) => basename(path)).sort());
      expect(new Set(paths)).to.have.lengthOf(12);
      for (const [n, path] of paths.entries()) expect(basename(path)).to.contain(` (${n + 1})`);
      expect(readFileSync(wanted, 'utf8')).to.equal('of somebody else');
    }
  });
});

import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { placeFile } from '../../src/client/place-file.ts';
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
      const placed = await placeFile(join(folder, name));
      expect(placed.partPath).to.match(/\.part$/);
      writeFileSync(placed.partPath, '');
      expect(await placed.finish()).to.equal(join(folder, name));
      expect(readdirSync(folder)).to.include(name).and.not.include(placed.partPath);
    }
    expect(readdirSync(folder)).to.have.length(2);
  });
});

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { removeNames } from '../../src/media/child-folder.ts';
import { aFolder } from '../support/redis.ts';

describe('What a child left under the names of parts', () => {
  let folder: string;
  let remove: () => void;
  beforeEach(() => {
    ({ folder, remove } = aFolder());
  });
  afterEach(() => remove());

  it('is removed by a few processes, also when it is thousands of folders', async () => {
    const names = Array.from({ length: 2_500 }, (_, n) => `part${n}`);
    for (const name of names) {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, 'x'), '');
    }
    let started = 0;
    const count = () => started++;
    subscribe('child_process', count);
    try {
      await removeNames(folder, /^part/);
    } finally {
      unsubscribe('child_process', count);
    }
    expect(readdirSync(folder)).to.deep.equal([]);
    expect(started).to.be.within(1, 10);
  });

  it('is removed whatever it is, without what its links lead to and without other names', async () => {
    const place = join(folder, 'place');
    for (const name of ['place', 'place/part0', 'place/part0/closed', 'place/part1', 'kept', 'kept/part2'])
      mkdirSync(join(folder, name));
    writeFileSync(join(place, 'part0', 'closed', 'x'), '');
    writeFileSync(join(place, 'part3'), '');
    symlinkSync(join(folder, 'kept'), join(place, 'part4'));
    symlinkSync(join(folder, 'kept'), join(place, 'part1', 'link'));
    writeFileSync(join(place, 'tools'), '');
    chmodSync(join(place, 'part0', 'closed'), 0o000);
    await removeNames(place, /^part/);
    expect(readdirSync(place)).to.deep.equal(['tools']);
    expect(existsSync(join(folder, 'kept', 'part2'))).to.equal(true);
  });

  it('may be nothing', async () => {
    await removeNames(folder, /^part/);
    expect(readdirSync(folder)).to.deep.equal([]);
  });
});

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { openCgroup } from '../../src/base/cgroup.ts';
import { type FoundCgroup, findParent } from '../../src/base/parent-cgroup.ts';
import { makeChildCgroup } from '../../src/worker/child-cgroup.ts';
import { aFolder } from '../support/redis.ts';

/** No process has this id: it is above every limit of the kernel. */
const stranger = 2 ** 30;

/** Folders and files as the kernel shows cgroups of version 2, which bind memory on no machine of these tests. */
describe('A cgroup of version 2, as files', () => {
  let root: ReturnType<typeof aFolder>;
  beforeEach(() => {
    root = aFolder();
  });
  afterEach(() => root.remove());

  const lay = (name: string, files: Readonly<Record<string, string>> = {}): FoundCgroup => {
    const folder = join(root.folder, name);
    mkdirSync(folder, { recursive: true });
    const delegated = { 'cgroup.controllers': 'cpu memory pids\n', 'cgroup.procs': '', 'cgroup.subtree_control': '' };
    for (const [file, text] of Object.entries({ 'cgroup.type': 'domain\n', ...delegated, ...files })) {
      if (text !== 'none') writeFileSync(join(folder, file), text);
    }
    return { version: 2, folder };
  };

  it('is used when memory is delegated to it and it holds nothing but this process and those that started it', () => {
    const place = lay('trawl.service', { 'cgroup.procs': `${process.pid}\n${process.ppid}\n` });
    expect(findParent(place)).to.deep.equal(place);
  });

  it('is used from a leaf into which an earlier start moved', () => {
    const place = lay('trawl.service');
    const leaf = lay('trawl.service/trawl-main', { 'cgroup.procs': `${process.pid}\n` });
    expect(findParent(leaf)).to.deep.equal(place);
  });

  it('is used at the root of the hierarchy, which has processes of all and no type', () => {
    const place = lay('root', { 'cgroup.type': 'none', 'cgroup.procs': `${stranger}\n` });
    expect(findParent(place)).to.deep.equal(place);
  });

  for (const [reason, name, files] of [
    ['memory is not delegated to this cgroup', 'trawl.service', { 'cgroup.controllers': 'cpu pids\n' }],
    ['this cgroup belongs to the whole login session', 'session-7.scope', {}],
    ['this cgroup has processes of others', 'trawl.service', { 'cgroup.procs': `${process.pid}\n${stranger}\n` }],
  ] as const) {
    it(`is not used, because ${reason}`, () => expect(findParent(lay(name, files))).to.equal(reason));
  }

  it('lets others have memory limits, and has a leaf for trawl, once it is opened', async () => {
    const { folder, version } = lay('trawl.service');
    await openCgroup({ version, folder }, join(root.folder, 'work'));
    expect(existsSync(join(folder, 'trawl-main'))).to.equal(true);
    expect(readFileSync(join(folder, 'cgroup.subtree_control'), 'utf8')).to.equal('+memory');
  });

  for (const [title, events, wasReached] of [
    ['the kernel ended a child at the limit', 'low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 1\n', true],
    ['the kernel ended a child because the machine was full', 'max 0\noom 0\noom_kill 1\n', false],
    ['the limit was reached and nothing ended', 'max 9\noom 1\noom_kill 0\n', false],
  ] as const) {
    it(`tells whether its limit was reached: ${title}`, () => {
      const { folder } = lay('trawl.service');
      const child = makeChildCgroup(join(folder, 'child'), 2 ** 28);
      expect(child.wasReached(), 'before the kernel tells').to.equal(false);
      writeFileSync(join(child.folder, 'memory.events'), events);
      expect(child.wasReached()).to.equal(wasReached);
    });
  }
});

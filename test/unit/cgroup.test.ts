import { expect } from 'chai';
import { ownCgroup } from '../../src/base/parent-cgroup.ts';

const second = '41 31 0:38 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate';
const unified = '41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw';
const first = '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory';

describe('The own cgroup', () => {
  for (const [title, mounts, cgroups, place] of [
    ['of version 2', [second], ['0::/user.slice/a.scope'], { version: 2, folder: '/sys/fs/cgroup/user.slice/a.scope' }],
    ['at the root', [second], ['0::/'], { version: 2, folder: '/sys/fs/cgroup' }],
    [
      'of version 1 beside version 2 without memory',
      [first, unified],
      ['4:memory:/a/b', '1:cpu,cpuacct:/c', '0::/'],
      { version: 1, folder: '/sys/fs/cgroup/memory/a/b' },
    ],
    ['with a colon in its name', [first], ['4:cpu,memory:/a:b'], { version: 1, folder: '/sys/fs/cgroup/memory/a:b' }],
    [
      'below the one that a container sees as its root',
      [first.replace(' / ', ' /docker/x ')],
      ['4:memory:/docker/x/y'],
      { version: 1, folder: '/sys/fs/cgroup/memory/y' },
    ],
    ['outside the one that a container sees', [first.replace(' / ', ' /docker/x ')], ['4:memory:/docker/xy'], null],
    ['above the root of the namespace', [second], ['0::/../a'], null],
    ['without a mount', ['23 1 0:2 / /proc rw - proc proc rw'], ['0::/'], null],
  ] as const) {
    it(`is found, or not: ${title}`, () => {
      expect(ownCgroup(mounts.join('\n'), cgroups.join('\n'))).to.deep.equal(place);
    });
  }
});

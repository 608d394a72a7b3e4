import { expect } from 'chai';
import {
  checkCgroup,
  checkClock,
  checkFileSum,
  checkFileSystem,
  checkFreeSpace,
  checkLandlock,
  checkMemorySum,
  checkNode,
  checkRedis,
} from '../../src/admin/machine-findings.ts';
import {
  checkClockDifference,
  checkLeaderClock,
  checkMemory,
  checkStrayProxy,
} from '../../src/admin/record-findings.ts';
import { networks } from '../../src/base/settings/kinds.ts';

const gib = 1024 ** 3;

describe('the doctor', () => {
  for (const [title, finding, level, text] of [
    ['Node 24', checkNode('24.0.0'), 'ok', /24\.0\.0; 24 or newer/],
    ['an older Node', checkNode('22.9.0'), 'problem', /22\.9\.0/],
    ['Redis 7', checkRedis('7.0.0', 'problem'), 'ok', /7\.0\.0/],
    ['Redis 6', checkRedis('6.2.9', 'problem'), 'problem', /6\.2\.9; 7\.0 or newer/],
    ['no Redis where none is needed', checkRedis(null, 'note'), 'note', /not installed: .* TRAWL_REDIS_URL/],
    ['a clock of this century', checkClock(Date.UTC(2026, 5)), 'ok', /2026-06-01T00:00:00\.000Z/],
    ['a clock without a battery', checkClock(0), 'problem', /1970.*: correct its clock/],
    ['a clock far ahead', checkClock(Date.UTC(2100, 0)), 'problem', /2100/],
    ['a disk with 1 GiB free', checkFreeSpace(gib), 'ok', /1\.0 GiB free\.$/],
    ['a disk with less than 1 GiB free', checkFreeSpace(gib - 1), 'note', /a full disk stops every new job/],
    ['a data folder on a disk', checkFileSystem(0xef53), 'ok', /lies on a disk\.$/],
    ['a data folder in memory', checkFileSystem(0x0102_1994), 'note', /count against its 2 GiB/],
    ['Landlock that bars TCP', checkLandlock(4), 'ok', /version 4 of Landlock/],
    ['an older Landlock', checkLandlock(3), 'note', /free in TCP connections/],
    ['no Landlock', checkLandlock(0), 'note', /no Landlock/],
    ['the clocks of Redis and this machine together', checkClockDifference(-1), 'ok', /0\.0 s from ours/],
    ['a cgroup', checkCgroup({ version: 2, folder: '/sys/fs/cgroup/x' }), 'ok', /version 2 below \/sys\/fs\/cgroup\/x/],
    ['no cgroup', checkCgroup('why'), 'note', /measured, four times a second \(why\); .*systemd-run --user --scope/],
    [
      'limits that the memory holds',
      checkMemorySum(2, 8, 12 * gib),
      'ok',
      /2 workers and 8 inspections may use 12\.0 GiB/,
    ],
    ['limits above the memory', checkMemorySum(2, 8, 12 * gib - 1), 'note', /lower TRAWL_WORKERS/],
    [
      'limits that the disk holds',
      checkFileSum(2, 16, gib, 7 * gib),
      'ok',
      /may fill 7\.0 GiB of disk, and 7\.0 GiB are free\.$/,
    ],
    ['limits above the disk', checkFileSum(2, 16, gib, 7 * gib - 1), 'note', /lower TRAWL_MAX_FILE_BYTES/],
    ['clocks 2 s apart', checkClockDifference(-2_000), 'ok', /2\.0 s/],
    [
      'a clock of Redis more than 2 s ahead',
      checkClockDifference(-2_001),
      'problem',
      /2\.0 s.*: keep both right with NTP/,
    ],
    ['a clock of Redis more than 2 s behind', checkClockDifference(2_100), 'problem', /2\.1 s/],
    ['no leader whose clock is off', checkLeaderClock(false), 'ok', /No leading controller/],
    ['a leader whose clock is off', checkLeaderClock(true), 'note', /more than 2 s from that of Redis/],
    ['no stray proxy', checkStrayProxy(null, []), 'ok', /No proxy/],
    [
      'a stray proxy',
      checkStrayProxy('10.0.0.5', networks.read('10.0.0.6')!),
      'note',
      / 10\.0\.0\.5 forwards .* TRAWL_TRUSTED_PROXIES: name it there/,
    ],
    [
      'a stray proxy that is trusted by now',
      checkStrayProxy('10.0.0.5', networks.read('10.0.0.0/8')!),
      'ok',
      /No proxy/,
    ],
    ['a stray proxy of IPv6', checkStrayProxy('fc00::1', networks.read('10.0.0.0/8')!), 'note', / fc00::1 forwards/],
    [
      'memory without a limit of its own',
      checkMemory({ usedBytes: gib, limitBytes: 4 * gib, isOwnLimit: false }),
      'problem',
      /no memory limit of its own: .* from 85 % of 4\.0 GiB on, of which it uses 25 %: set maxmemory/,
    ],
    [
      'memory that Redis hides',
      checkMemory({ usedBytes: 0, limitBytes: null, isOwnLimit: false }),
      'problem',
      /no memory limit of its own: .* never refused: set maxmemory/,
    ],
    ['memory that is used by 84 %', checkMemory({ usedBytes: 84, limitBytes: 100, isOwnLimit: true }), 'ok', /84 %/],
    [
      'memory that is used by 85 %',
      checkMemory({ usedBytes: 85, limitBytes: 100, isOwnLimit: true }),
      'problem',
      /85 % of its memory; from 85 % on new jobs are refused: raise maxmemory/,
    ],
  ] as const) {
    it(`calls ${title} ${level}`, () => {
      expect(finding).to.include({ level });
      expect(finding.text)
        .to.match(text)
        .and.match(/^[A-Zr\d].*\.$/);
    });
  }
});

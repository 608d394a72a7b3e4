import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';

type Architecture = 'x64' | 'arm64';
type Numbers = readonly [x64: number | null, arm64: number | null];

const same = (number: number): Numbers => [number, number];

/** System calls that yt-dlp, Python, ffmpeg and Node do not need; each answers as if the kernel did not have it. */
const denied: Readonly<Record<string, Numbers>> = {
  // Namespaces and mounts. The flags of clone3 lie in memory, which a filter cannot read; the C library falls back to clone.
  unshare: [272, 97],
  setns: [308, 268],
  clone3: same(435),
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: same(428),
  move_mount: same(429),
  fsopen: same(430),
  fsconfig: same(431),
  fsmount: same(432),
  fspick: same(433),
  mount_setattr: same(442),
  open_by_handle_at: [304, 265],
  name_to_handle_at: [303, 264],
  fanotify_init: [300, 262],
  fanotify_mark: [301, 263],
  quotactl: [179, 60],
  quotactl_fd: same(443),
  // Other processes.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: same(440),
  process_mrelease: same(448),
  pidfd_getfd: same(438),
  kcmp: [312, 272],
  // Processes of the same user, and modes, owners and times of its files, none of which Landlock bars.
  sched_setparam: [142, 118],
  sched_setscheduler: [144, 119],
  sched_setattr: [314, 274],
  sched_setaffinity: [203, 122],
  setpriority: [141, 140],
  ioprio_set: [251, 30],
  chmod: [90, null],
  fchmod: [91, 52],
  fchmodat: [268, 53],
  fchmodat2: same(452),
  chown: [92, null],
  fchown: [93, 55],
  lchown: [94, null],
  fchownat: [260, 54],
  utime: [132, null],
  utimes: [235, null],
  futimesat: [261, null],
  utimensat: [280, 88],
  setxattr: [188, 5],
  lsetxattr: [189, 6],
  fsetxattr: [190, 7],
  removexattr: [197, 14],
  lremovexattr: [198, 15],
  fremovexattr: [199, 16],
  inotify_init: [253, null],
  inotify_init1: [294, 26],
  inotify_add_watch: [254, 27],
  // Memory that belongs to no process: only a cgroup would count it.
  memfd_create: [319, 279],
  memfd_secret: same(447),
  shmget: [29, 194],
  shmat: [30, 196],
  shmctl: [31, 195],
  shmdt: [67, 197],
  semget: [64, 190],
  semop: [65, 193],
  semctl: [66, 191],
  semtimedop: [220, 192],
  msgget: [68, 186],
  msgsnd: [69, 189],
  msgrcv: [70, 188],
  msgctl: [71, 187],
  mq_open: [240, 180],
  mq_unlink: [241, 181],
  mq_timedsend: [242, 182],
  mq_timedreceive: [243, 183],
  mq_notify: [244, 184],
  mq_getsetattr: [245, 185],
  // A file that only travels between sockets is open in no process, so no watch finds it.
  sendmsg: [46, 211],
  sendmmsg: [307, 269],
  // Large or rarely used parts of the kernel.
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_setup: [206, 0],
  io_uring_setup: same(425),
  io_uring_enter: same(426),
  io_uring_register: same(427),
  vmsplice: [278, 75],
  splice: [275, 76],
  tee: [276, 77],
  remap_file_pages: [216, 234],
  mbind: [237, 235],
  get_mempolicy: [239, 236],
  set_mempolicy: [238, 237],
  set_mempolicy_home_node: same(450),
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  personality: [135, 92],
  modify_ldt: [154, null],
  uselib: [134, null],
  ustat: [136, null],
  sysfs: [139, null],
  lookup_dcookie: [212, 18],
  // The machine itself, which only root may change anyway.
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  swapon: [167, 224],
  swapoff: [168, 225],
  reboot: [169, 142],
  acct: [163, 89],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  syslog: [103, 116],
  vhangup: [153, 58],
  iopl: [172, null],
  ioperm: [173, null],
};
/** Calls from here on came with Linux 6.13 or later, or belong to the x32 ABI, whose numbers have bit 30 set. */
const firstUnknown = 463;
/** Landlock bars no socket that listens at a port which the kernel chooses, at every address. */
const listen: Numbers = [50, 201];
const clone: Numbers = [56, 220];
const socket: Numbers = [41, 198];
const socketpair: Numbers = [53, 199];
const sendto: Numbers = [44, 206];
/** MSG_FASTOPEN connects without a connect(), the only place where Landlock judges the port. */
const fastOpen = 0x2000_0000;
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const namespaceFlags = 0x7e02_0000;
/** CLONE_THREAD, CLONE_FILES, CLOSE_RANGE_UNSHARE: no watch finds the files of a thread that has a table of its own. */
const threadFlag = 0x1_0000;
const filesFlag = 0x400;
const unshareFlag = 2;
const closeRange = same(436);
const prlimit: Numbers = [302, 261];
/** AF_UNIX; AF_INET and AF_INET6, of these TCP alone: Landlock bars no other protocol. */
const unix = 1;
const internet = [2, 10];
const protocols = [0, 6];
/** SOCK_STREAM, and the bits of a type beside its flags. */
const stream = 1;
const typeBits = 0xf;

/** Value of AUDIT_ARCH: another one means a call of the 32-bit ABI, which ends the process. */
const audited: Readonly<Record<Architecture, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 };

/** Places in `struct seccomp_data`; of an argument, the lower half on a little-endian processor. */
const numberAt = 0;
const architectureAt = 4;
const argumentAt = (index: number) => 16 + 8 * index;

const allow = 0x7fff_0000;
const kill = 0x8000_0000;
const refuseWith = (error: number) => 0x0005_0000 | error;

interface Instruction {
  readonly code: number;
  /** Instructions to skip when the condition holds, and when it does not. */
  readonly skip: readonly [yes: number, no: number];
  readonly value: number;
}

const next = [0, 0] as const;
const load = (offset: number): Instruction => ({ code: 0x20, skip: next, value: offset });
const answer = (value: number): Instruction => ({ code: 0x06, skip: next, value });
const ifEqual = (value: number, yes: number, no: number): Instruction => ({ code: 0x15, skip: [yes, no], value });
const ifAtLeast = (value: number, yes: number, no: number): Instruction => ({ code: 0x35, skip: [yes, no], value });
const keepBits = (value: number): Instruction => ({ code: 0x54, skip: next, value });
const ifAnyBit = (value: number, yes: number, no: number): Instruction => ({ code: 0x45, skip: [yes, no], value });

/**
 * Returns the seccomp filter of children as the kernel's `struct sock_filter[]`, or `null` on a processor without a table. Where children
 * open UNIX sockets they listen, too, because port-forwarder.py does.
 */
export function seccompFilter(opensUnix: boolean): Buffer | null {
  const architecture = process.arch;
  if (architecture !== 'x64' && architecture !== 'arm64') return null;
  const column = architecture === 'x64' ? 0 : 1;
  const numberOf = (numbers: Numbers) => numbers[column] ?? firstUnknown;
  const { ENOSYS, EPERM } = constants.errno;
  const refused = [...Object.values(denied), ...(opensUnix ? [] : [listen])];
  return encode([
    load(architectureAt),
    ifEqual(audited[architecture], 1, 0),
    answer(kill),
    load(numberAt),
    ifAtLeast(firstUnknown, 0, 1),
    answer(refuseWith(ENOSYS)),
    ...refused.flatMap((numbers) => [ifEqual(numberOf(numbers), 0, 1), answer(refuseWith(ENOSYS))]),
    ifEqual(numberOf(clone), 0, 6),
    load(argumentAt(0)),
    ifAnyBit(namespaceFlags, 2, 0),
    ifAnyBit(threadFlag, 0, 2),
    ifAnyBit(filesFlag, 1, 0),
    answer(refuseWith(EPERM)),
    answer(allow),
    ...refuseBits(numberOf(sendto), 3, fastOpen),
    ...refuseBits(numberOf(closeRange), 2, unshareFlag),
    ...refuseBits(numberOf(prlimit), 0, 0xffff_ffff),
    ...pairRules(numberOf(socketpair)),
    ...socketRules(numberOf(socket), opensUnix),
    answer(allow),
  ]);
}

/**
 * Writes the filter of this processor to a new file and returns its path, or `null` without a filter. Children open UNIX sockets
 * only where they have a network of their own: elsewhere any socket with a path of the system would be in their reach.
 */
export async function laySeccompFilter(path: string, hasOwnNetwork: boolean): Promise<string | null> {
  const filter = seccompFilter(hasOwnNetwork);
  if (filter === null) return null;
  await writeFile(path, filter, { flag: 'wx', mode: 0o400 });
  return path;
}

function refuseBits(number: number, argument: number, flag: number): Instruction[] {
  const judge = [
    load(argumentAt(argument)),
    ifAnyBit(flag, 0, 1),
    answer(refuseWith(constants.errno.EPERM)),
    answer(allow),
  ];
  return [ifEqual(number, 0, judge.length), ...judge];
}

/** Pairs of sockets reach nobody else. */
function pairRules(number: number): Instruction[] {
  const judge = [load(argumentAt(0)), ...oneOf([unix], refuseWith(constants.errno.EAFNOSUPPORT)), answer(allow)];
  return [ifEqual(number, 0, judge.length), ...judge];
}

function socketRules(number: number, opensUnix: boolean): Instruction[] {
  const { EAFNOSUPPORT, EPROTONOSUPPORT } = constants.errno;
  const judge = [
    load(argumentAt(0)),
    ifEqual(unix, 0, 1),
    answer(opensUnix ? allow : refuseWith(EAFNOSUPPORT)),
    ...oneOf(internet, refuseWith(EAFNOSUPPORT)),
    load(argumentAt(1)),
    keepBits(typeBits),
    ...oneOf([stream], refuseWith(EPROTONOSUPPORT)),
    load(argumentAt(2)),
    ...oneOf(protocols, refuseWith(EPROTONOSUPPORT)),
    answer(allow),
  ];
  return [ifEqual(number, 0, judge.length), ...judge];
}

/** Goes on with a loaded value that is one of these, and answers otherwise. */
function oneOf(values: readonly number[], otherwise: number): Instruction[] {
  return [...values.map((value, index) => ifEqual(value, values.length - index, 0)), answer(otherwise)];
}

function encode(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(8 * program.length);
  for (const [index, { code, skip, value }] of program.entries()) {
    bytes.writeUInt16LE(code, 8 * index);
    bytes.writeUInt8(skip[0], 8 * index + 2);
    bytes.writeUInt8(skip[1], 8 * index + 3);
    bytes.writeUInt32LE(value >>> 0, 8 * index + 4);
  }
  return bytes;
}

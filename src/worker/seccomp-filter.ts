import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { denied, type Numbers, same } from './denied-calls.ts';

type Architecture = 'x64' | 'arm64';

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
const ioctl: Numbers = [16, 29];
/**
 * Commands of terminals, pipes and sockets, by the second byte of their number. Those of a file system change attributes of a file that a
 * child may only read, and Landlock bars those of devices alone.
 */
const commands = [0x5400, 0x8900];
const commandBits = 0xff00;
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
    ...commandRules(numberOf(ioctl)),
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

function commandRules(number: number): Instruction[] {
  const refusal = refuseWith(constants.errno.ENOTTY);
  const judge = [load(argumentAt(1)), keepBits(commandBits), ...oneOf(commands, refusal), answer(allow)];
  return [ifEqual(number, 0, judge.length), ...judge];
}

/** Pairs of streams reach nobody else. One socket of a pair of datagrams sends to any UNIX socket with a path, such as that of the system's log. */
function pairRules(number: number): Instruction[] {
  const { EAFNOSUPPORT, EPROTONOSUPPORT } = constants.errno;
  const judge = [
    load(argumentAt(0)),
    ...oneOf([unix], refuseWith(EAFNOSUPPORT)),
    ...streamRules(EPROTONOSUPPORT),
    answer(allow),
  ];
  return [ifEqual(number, 0, judge.length), ...judge];
}

function streamRules(error: number): Instruction[] {
  return [load(argumentAt(1)), keepBits(typeBits), ...oneOf([stream], refuseWith(error))];
}

function socketRules(number: number, opensUnix: boolean): Instruction[] {
  const { EAFNOSUPPORT, EPROTONOSUPPORT } = constants.errno;
  const judge = [
    load(argumentAt(0)),
    ifEqual(unix, 0, 1),
    answer(opensUnix ? allow : refuseWith(EAFNOSUPPORT)),
    ...oneOf(internet, refuseWith(EAFNOSUPPORT)),
    ...streamRules(EPROTONOSUPPORT),
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

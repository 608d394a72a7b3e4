import { execFile } from 'node:child_process';
import { access, constants, stat, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Config } from '../base/config.ts';
import { readLandlockVersion } from '../base/landlock-version.ts';
import { attemptMemoryBytes } from '../base/resource-limits.ts';
import { projectPython, ytDlpVersionArgs } from '../media/yt-dlp.ts';
import { describeLandlock, tcpVersion } from '../model/isolation.ts';
import { isSupportedVersion } from '../store/redis/redis-process.ts';
import { type Finding, findingOf } from './doctor-finding.ts';

const minNode = 24;
const minFreeBytes = 1024 ** 3;
/** The magic numbers of tmpfs and ramfs. */
const memoryTypes = [0x0102_1994, 0x8584_58f6];
const earliest = Date.UTC(2025, 0);
const latest = Date.UTC(2100, 0);
/** Ends a hang: on a busy machine a program may need many seconds until it has said its version. */
const limits = { timeout: 60_000 };
const run = promisify(execFile);

type MachineSettings = Pick<Config, 'redisUrl' | 'runner' | 'sandbox'>;

export async function checkMachine(config: MachineSettings & Pick<Config, 'data'>): Promise<Finding[]> {
  const [programs, { type, bavail, bsize }, folder] = await Promise.all([
    checkPrograms(config),
    nearestFolder(config.data).then((path) => statfs(path)),
    checkFolder(config.data),
  ]);
  return [...programs, checkClock(Date.now()), checkFreeSpace(bavail * bsize), checkFileSystem(type), folder];
}

/** Checks the programs of this machine: a missing one is a problem only where these settings use it here. */
export async function checkPrograms({ redisUrl, runner, sandbox }: MachineSettings): Promise<Finding[]> {
  const here = runner === 'process' ? 'problem' : 'note';
  const redis = redisUrl === null ? here : 'note';
  const number = /\b(\d+(?:\.\d+)+)/;
  return Promise.all([
    checkNode(process.versions.node),
    versionOf('redis-server', ['--version'], /\bv=([\d.]+)/).then((version) => checkRedis(version, redis)),
    checkProgram('setpriv', ['--version'], number, redis, 'trawl up starts its redis-server with it'),
    checkProgram('flock', ['--version'], number, here, 'trawl up locks its data folder with it'),
    checkProgram('ffmpeg', ['-version'], number, here, 'workers convert and check files with it'),
    checkProgram('ffprobe', ['-version'], number, here, 'workers prove files with it'),
    checkProgram('yt-dlp', ytDlpVersionArgs, number, here, 'make setup installs it for workers', projectPython),
    checkSandbox(sandbox, here),
    readLandlockVersion(projectPython).then(checkLandlock),
  ]);
}

export function checkNode(version: string): Finding {
  const well = Number.parseInt(version, 10) >= minNode;
  return findingOf(well, 'node', `Node is version ${version}; ${minNode} or newer is needed.`);
}

export function checkRedis(version: string | null, missing: Finding['level']): Finding {
  if (version === null) return { level: missing, about: 'redis-server', text: 'redis-server is not installed.' };
  const text = `redis-server is version ${version}; 7.0 or newer is needed.`;
  return findingOf(isSupportedVersion(version), 'redis-server', text, missing);
}

/** Checks that the clock shows a time between 2025 and 2100. */
export function checkClock(now: number): Finding {
  return findingOf(now >= earliest && now < latest, 'clock', `This machine says it is ${new Date(now).toISOString()}.`);
}

/** Checks that the data folder, or the folder above it, can be written. */
async function checkFolder(data: string): Promise<Finding> {
  const folder = resolve(data);
  try {
    const place = await nearestFolder(folder);
    if (!(await stat(place)).isDirectory()) throw new Error(`${place} is no folder`);
    await access(place, constants.W_OK | constants.X_OK);
    return { level: 'ok', about: 'data folder', text: `The data folder is ${folder}.` };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { level: 'problem', about: 'data folder', text: `The data folder ${folder} cannot be written: ${why}.` };
  }
}

/** Returns `note` below 1 GiB of free space. */
export function checkFreeSpace(freeBytes: number): Finding {
  const free = `The file system of the data folder has ${(freeBytes / 1024 ** 3).toFixed(1)} GiB free`;
  const well = freeBytes >= minFreeBytes;
  return findingOf(well, 'disk', well ? `${free}.` : `${free}: a full disk stops every new job.`, 'note');
}

/** Returns `note` for a file system in memory, by the type that statfs tells: what a job fetches then counts as its memory. */
export function checkFileSystem(type: number): Finding {
  const isInMemory = memoryTypes.includes(type);
  const where = isInMemory
    ? `lies in memory: the files of a job count against its ${attemptMemoryBytes / 1024 ** 3} GiB, and are lost with the machine; name a folder on a disk`
    : 'lies on a disk';
  return findingOf(!isInMemory, 'file system', `The data folder ${where}.`, 'note');
}

export async function nearestFolder(folder: string): Promise<string> {
  const path = resolve(folder);
  return stat(path).then(
    () => path,
    (error) => {
      if (dirname(path) === path) throw error;
      return nearestFolder(dirname(path));
    },
  );
}

/** Runs bubblewrap, because it may be installed and still not be allowed to make namespaces here. */
async function checkSandbox(mode: MachineSettings['sandbox'], here: Finding['level']): Promise<Finding> {
  const missing = mode === 'required' ? here : 'note';
  if (mode === 'off')
    return { level: missing, about: 'bwrap', text: 'Workers run without a sandbox: TRAWL_SANDBOX is off.' };
  try {
    await run('bwrap', ['--unshare-net', '--unshare-pid', '--unshare-ipc', '--ro-bind', '/', '/', 'true'], limits);
    return { level: 'ok', about: 'bwrap', text: 'bwrap works: workers run in its sandbox.' };
  } catch (error) {
    const { code, stderr = '' } = error as NodeJS.ErrnoException & { stderr?: string };
    const why = code === 'ENOENT' ? 'bwrap is not installed' : `bwrap does not work here (${stderr.trim() || code})`;
    return {
      level: missing,
      about: 'bwrap',
      text: `${why}: without it, the isolation of children is ${process.getuid?.() === 0 ? 'landlock-user' : 'landlock'} (docs/images.md).`,
    };
  }
}

/** Judges Landlock, which isolates children without bubblewrap, and those of the inspector from each other. */
export function checkLandlock(version: number): Finding {
  return findingOf(version >= tcpVersion, 'landlock', describeLandlock(version), 'note');
}

async function checkProgram(
  name: string,
  question: readonly string[],
  answer: RegExp,
  missing: Finding['level'],
  use: string,
  program = name,
): Promise<Finding> {
  const version = await versionOf(program, question, answer);
  const text = version === null ? `${name} is not installed: ${use}.` : `${name} is version ${version}.`;
  return findingOf(version !== null, name, text, missing);
}

/** Returns the version of a program, or `null` when it cannot be run. */
async function versionOf(program: string, question: readonly string[], answer: RegExp): Promise<string | null> {
  try {
    const { stdout } = await run(program, [...question], limits);
    return answer.exec(stdout)?.[1] ?? 'unknown';
  } catch {
    // Not installed, or too broken to show its version.
    return null;
  }
}

import { execFile } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { access, constants, readlink, stat, statfs } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { promisify } from 'node:util';
import { findCgroup } from '../base/cgroup.ts';
import type { Config } from '../base/config.ts';
import { codeOf, messageOf } from '../base/errors.ts';
import { readLandlockVersion } from '../base/landlock-version.ts';
import { machineMemoryBytes } from '../base/machine-memory.ts';
import { inspectionsAtOnce } from '../base/resource-limits.ts';
import { projectPython, ytDlpVersionArgs } from '../media/yt-dlp.ts';
import { type Finding, findingOf, fine, problem } from './doctor-finding.ts';
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
} from './machine-findings.ts';

/** Ends a hang: on a busy machine a program may need many seconds until it has said its version. */
const limits = { timeout: 60_000 };
const run = promisify(execFile);

type MachineSettings = Pick<Config, 'redisUrl' | 'runner' | 'sandbox'>;

export async function checkMachine(config: MachineSettings & Pick<Config, 'data'>): Promise<Finding[]> {
  const [programs, { type }, disks, folder] = await Promise.all([
    checkPrograms(config),
    nearestFolder(config.data).then((path) => statfs(path)),
    checkDisks(config.data),
    checkFolder(config.data),
  ]);
  return [...programs, checkClock(Date.now()), ...disks, checkFileSystem(type), folder];
}

/** Compares the limits of all workers and inspections together with the machine. */
export async function checkLimits(
  config: Pick<Config, 'cgroup' | 'data' | 'maxFileBytes' | 'workers'>,
): Promise<Finding[]> {
  const { bavail, bsize } = await statfs(await nearestFolder(config.data));
  const inspections = inspectionsAtOnce(availableParallelism(), machineMemoryBytes());
  return [
    checkCgroup(config.cgroup === 'off' ? 'TRAWL_CGROUP is off' : findCgroup()),
    checkMemorySum(config.workers, inspections, machineMemoryBytes()),
    checkFileSum(config.workers, inspections, config.maxFileBytes, bavail * bsize),
  ];
}

/** Checks the file system of the data folder, and those of its parts that have one of their own. */
async function checkDisks(data: string): Promise<Finding[]> {
  const own = await nearestFolder(data);
  const parts = ['redis', 'objects', 'work'].map((name) => join(resolve(data), name));
  const { dev } = await stat(own);
  const found = await Promise.all(
    [own, ...parts].map(async (folder) => {
      const seen = await stat(folder).catch(() => null);
      if (folder !== own && (seen === null || seen.dev === dev)) return [];
      const { bavail, bsize } = await statfs(folder);
      return [checkFreeSpace(bavail * bsize, folder === own ? undefined : folder)];
    }),
  );
  return found.flat();
}

/** Checks the programs of this machine: a missing one is a problem only where these settings use it here. */
export async function checkPrograms({ redisUrl, runner, sandbox }: MachineSettings): Promise<Finding[]> {
  const here = runner === 'process' ? 'problem' : 'note';
  const redis = redisUrl === null ? here : 'note';
  return Promise.all([
    checkNode(process.versions.node),
    versionOf('redis-server', ['--version'], /\bv=([\d.]+)/).then((version) => checkRedis(version, redis)),
    checkProgram('setpriv', ['--version'], redis, 'trawl up starts its redis-server with it'),
    checkProgram('flock', ['--version'], here, 'trawl up locks its data folder with it'),
    checkProgram('ffmpeg', ['-version'], here, 'workers convert and check files with it'),
    checkProgram('ffprobe', ['-version'], here, 'workers prove files with it'),
    checkProgram('yt-dlp', ytDlpVersionArgs, here, 'make setup installs it for workers', projectPython),
    checkSandbox(sandbox, here),
    readLandlockVersion(projectPython).then(checkLandlock),
  ]);
}

async function checkFolder(data: string): Promise<Finding> {
  const folder = resolve(data);
  try {
    const nearest = await nearestFolder(folder);
    if (!(await stat(nearest)).isDirectory()) throw new Error(`${nearest} is no folder`);
    await refuseLostLink(nearest, folder);
    await access(nearest, constants.W_OK | constants.X_OK);
    tryFolder(nearest);
    return fine('data folder', `The data folder is ${folder}.`);
  } catch (error) {
    return problem('data folder', `The data folder ${folder} cannot be written: ${messageOf(error)}.`);
  }
}

/** Throws when no folder can be made in another one: root may write below /proc by its rights. A full disk has a finding of its own. */
function tryFolder(folder: string): void {
  try {
    rmdirSync(mkdtempSync(join(folder, '.trawl-')));
  } catch (error) {
    if (!/^(?:ENOSPC|EDQUOT)$/.test(codeOf(error))) throw error;
  }
}

/** Throws when the first name that is missing below a folder is a link, as to a disk that is not mounted. */
async function refuseLostLink(nearest: string, folder: string): Promise<void> {
  const [name = ''] = relative(nearest, folder).split(sep);
  const target = await readlink(join(nearest, name)).catch(() => null);
  if (name !== '' && target !== null)
    throw new Error(`${join(nearest, name)} is a link to ${target}, which is missing`);
}

async function nearestFolder(folder: string): Promise<string> {
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
  const about = 'bwrap';
  if (mode === 'off') return findingOf(missing, about, 'Workers run without a sandbox: TRAWL_SANDBOX is off.');
  try {
    await run('bwrap', ['--unshare-net', '--unshare-pid', '--unshare-ipc', '--ro-bind', '/', '/', 'true'], limits);
    return fine(about, 'bwrap works: workers run in its sandbox.');
  } catch (error) {
    const { code, stderr = '' } = error as NodeJS.ErrnoException & { stderr?: string };
    const why = code === 'ENOENT' ? 'bwrap is not installed' : `bwrap does not work here (${stderr.trim() || code})`;
    const other = process.getuid?.() === 0 ? 'landlock-user' : 'landlock';
    return findingOf(missing, about, `${why}: without it, the isolation of children is ${other} (docs/images.md).`);
  }
}

async function checkProgram(
  name: string,
  question: readonly string[],
  missing: Finding['level'],
  use: string,
  program = name,
): Promise<Finding> {
  const version = await versionOf(program, question, /\b(\d+(?:\.\d+)+)/);
  if (version === null) return findingOf(missing, name, `${name} is not installed: ${use}.`);
  return fine(name, `${name} is version ${version}.`);
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

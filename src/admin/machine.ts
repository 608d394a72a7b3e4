import { execFile } from 'node:child_process';
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { isRecent } from '../store/process.ts';
import { type Finding, judgeBy } from './finding.ts';

const leastNode = 24;
const leastFreeBytes = 1024 ** 3;
const earliest = Date.UTC(2025, 0);
const latest = Date.UTC(2100, 0);
const run = promisify(execFile);

/** Judges the programs of this machine; its own redis-server is only needed when the record is not elsewhere. */
export async function judgePrograms(needsRedis: boolean): Promise<Finding[]> {
  const missing = needsRedis ? 'problem' : 'note';
  return [
    judgeNode(process.versions.node),
    judgeRedis(await versionOf('redis-server', '--version', /\bv=([\d.]+)/), missing),
    await judgePresence('setpriv', '--version', missing, 'trawl up starts its redis-server with it'),
    await judgePresence('ffmpeg', '-version', 'note', 'workers convert and check files with it'),
    await judgePresence('bwrap', '--version', 'note', 'workers run in its sandbox'),
  ];
}

/** Judges the Node that runs this. */
export function judgeNode(version: string): Finding {
  const well = Number.parseInt(version, 10) >= leastNode;
  return judgeBy(well, 'node', `Node is version ${version}; ${leastNode} or newer is needed.`);
}

/** Judges the redis-server of this machine; `null` when there is none. */
export function judgeRedis(version: string | null, missing: Finding['level']): Finding {
  if (version === null) return { level: missing, about: 'redis-server', text: 'redis-server is not installed.' };
  const text = `redis-server is version ${version}; 7.0 or newer is needed.`;
  return judgeBy(isRecent(version), 'redis-server', text, missing);
}

/** Judges whether the clock of this machine can be right at all. */
export function judgeClock(now: number): Finding {
  return judgeBy(now >= earliest && now < latest, 'clock', `This machine says it is ${new Date(now).toISOString()}.`);
}

/** Judges the room in the file system of the data folder, or of the folder that it will stand in. */
export async function judgeDisk(data: string): Promise<Finding> {
  const { bavail, bsize } = await statNearest(resolve(data));
  return judgeRoom(bavail * bsize);
}

/** Judges how much is free. */
export function judgeRoom(freeBytes: number): Finding {
  const free = `The file system of the data folder has ${(freeBytes / 1024 ** 3).toFixed(1)} GiB free`;
  const well = freeBytes >= leastFreeBytes;
  return judgeBy(well, 'disk', well ? `${free}.` : `${free}: a full disk stops every new job.`, 'note');
}

async function statNearest(folder: string): Promise<{ bavail: number; bsize: number }> {
  return statfs(folder).catch((error) => {
    if (dirname(folder) === folder) throw error;
    return statNearest(dirname(folder));
  });
}

async function judgePresence(
  program: string,
  option: string,
  missing: Finding['level'],
  use: string,
): Promise<Finding> {
  const version = await versionOf(program, option, /\b(\d+(?:\.\d+)+)/);
  const text = version === null ? `${program} is not installed: ${use}.` : `${program} is version ${version}.`;
  return judgeBy(version !== null, program, text, missing);
}

/** What a program says of its version, or `null` when it cannot be run. */
async function versionOf(program: string, option: string, pattern: RegExp): Promise<string | null> {
  try {
    const { stdout } = await run(program, [option], { timeout: 5_000 });
    return pattern.exec(stdout)?.[1] ?? 'unknown';
  } catch {
    // It is not installed, or so broken that it cannot even say its version.
    return null;
  }
}

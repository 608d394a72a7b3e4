import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ProgramPaths } from '../../src/worker/find-programs.ts';
import { layCappedPython } from './capped-python.ts';
import { aFolder } from './redis.ts';
import { programs } from './worker.ts';

/** Python of the system, which users other than root can run wherever the project lies. */
export const systemPython = '/usr/bin/python3';
const unused = ['pip', 'setuptools', 'pkg_resources', '_distutils_hack'];

/** Lets other users through to a folder, as the choice of `landlock-user` does. Returns what closes the way again. */
export function openToOthers(folder: string): () => void {
  mkdirSync(folder, { recursive: true });
  // Each test run has a temporary folder that only root may enter.
  for (let path = folder; path.startsWith(tmpdir()); path = dirname(path)) chmodSync(path, 0o711);
  return () => chmodSync(tmpdir(), 0o700);
}

/**
 * For the tests around it: programs that every user can run, which are yt-dlp and the driver of the project with the Python of the
 * system. `landlock` is the highest version of the kernel that this Python meets.
 */
export function programsOfOthers(landlock?: number): () => ProgramPaths {
  let place: ReturnType<typeof aFolder>;
  let laid: ProgramPaths;
  before(() => {
    place = aFolder();
    laid = layPrograms(place.folder);
    if (landlock !== undefined) laid = { ...laid, python: layCappedPython(place.folder, landlock, laid) };
  });
  after(() => place?.remove());
  return () => laid;
}

function layPrograms(folder: string): ProgramPaths {
  const tell = 'import sys, sysconfig; print(sysconfig.get_paths()["purelib"], "python%d.%d" % sys.version_info[:2])';
  const ask = (python: string) => execFileSync(python, ['-I', '-c', tell], { encoding: 'utf8' }).trim().split(' ');
  const [packages = ''] = ask(programs.python);
  const [home, site] = [
    join(folder, 'python'),
    join(folder, 'python', 'lib', ask(systemPython)[1] ?? '', 'site-packages'),
  ];
  for (const path of [join(home, 'bin'), site]) mkdirSync(path, { recursive: true });
  symlinkSync(systemPython, join(home, 'bin', 'python3'));
  writeFileSync(join(home, 'pyvenv.cfg'), `home = ${dirname(systemPython)}\n`);
  const used = readdirSync(packages).filter((name) => !unused.some((other) => name.startsWith(other)));
  for (const name of used) cpSync(join(packages, name), join(site, name), { recursive: true });
  cpSync(dirname(programs.driver), join(folder, 'media'), { recursive: true });
  chmodSync(folder, 0o755);
  return { ...programs, python: join(home, 'bin', 'python3'), driver: join(folder, 'media', 'driver.py') };
}

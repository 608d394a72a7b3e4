import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findPrograms, type ProgramPaths } from '../../src/worker/find-programs.ts';

/** Runs a script as Python does, with a kernel that knows only so high a version of Landlock; 0: none. */
const script = (version: number) => `
import ctypes, runpy, sys
real = ctypes.CDLL
class Kernel:
    def __init__(self, *args, **named):
        self.real = real(*args, **named)
    def __getattr__(self, name):
        return getattr(self.real, name)
    def syscall(self, number, *args):
        asked = number == 444 and args == (None, 0, 1)
        if ${version} == 0 and number in (444, 445, 446):
            return -1
        return min(${version}, self.real.syscall(number, *args)) if asked else self.real.syscall(number, *args)
ctypes.CDLL = Kernel
words = sys.argv[1:]
while words[0] in ('-I', '-S', '-B'):
    words.pop(0)
if words[0] == '-X':
    words = words[2:]
if words[0] == '-c':
    sys.argv = words
    exec(words[1])
else:
    sys.argv = words
    runpy.run_path(words[0], run_name='__main__')
`;

/**
 * Lays a Python into `python/bin` of a folder that meets an older kernel; returns its path. It runs `python`, which a child must be
 * able to read where Landlock restricts it.
 */
export function layCappedPython(
  folder: string,
  landlock: number,
  { python }: Pick<ProgramPaths, 'python'> = findPrograms(process.env.PATH ?? ''),
): string {
  const home = join(folder, 'python', 'bin');
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, 'capped.py'), script(landlock));
  const path = join(home, 'capped-python3');
  writeFileSync(path, `#!/bin/sh\nexec '${python}' -I -B -X utf8 '${home}/capped.py' "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

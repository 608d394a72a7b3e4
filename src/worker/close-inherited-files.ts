import { closeSync, readdirSync, readFileSync } from 'node:fs';

/** O_CLOEXEC. */
const closedInChildren = 0o2000000;

/**
 * Closes the files that this process inherited, such as the lock or the log of a script that started trawl: a child would inherit them
 * in turn, and no sandbox bars the use of an open file. Those that Node opens are closed in children.
 */
export function closeInheritedFiles(): void {
  for (const number of readdirSync('/proc/self/fd').map(Number)) {
    if (number > 2 && !isClosedInChildren(number)) closeSync(number);
  }
}

function isClosedInChildren(number: number): boolean {
  try {
    const [, flags = ''] = /^flags:\s+(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${number}`, 'utf8')) ?? [];
    return (Number.parseInt(flags, 8) & closedInChildren) !== 0;
  } catch {
    // The list of files itself, which is closed by now.
    return true;
  }
}

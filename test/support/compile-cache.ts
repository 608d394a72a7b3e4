import { homedir } from 'node:os';
import { join } from 'node:path';

/** Folder of compiled code, which `./trawl` uses too: without it a process loads the compiler of TypeScript, some 16 MB. */
export const compileCache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'trawl', 'compile');

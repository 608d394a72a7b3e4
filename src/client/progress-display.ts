import { printable, type Terminal } from '../base/terminal.ts';
import { progressLine, type ShownProgress } from './progress-line.ts';

/** Progress of one file, from the request to its name in the folder. */
export interface FileProgress {
  readonly stage: string;
  /** 0 to 1, of the whole way; a lower value than before is not shown. */
  readonly fraction: number;
  /** Speed of the stage, and the time until its end. */
  readonly speedBytes: number | null;
  readonly leftSeconds: number | null;
}

interface FileState extends FileProgress {
  readonly hasEnded: boolean;
  /** Time of the last news, on the clock of `performance.now`. */
  readonly at: number;
}

const redrawMs = 100;
/** Speed and time that are older are not shown: they are no longer true. */
const staleMs = 10_000;
const clearRest = '\x1b[K';
const clear = `\r${clearRest}`;

/** Shows one bar for all files on a terminal, and one line for each new stage of a file elsewhere. */
export function showFiles(terminal: Terminal) {
  const { out, err, env } = terminal;
  const isBar = terminal.isWatched && env.TERM !== 'dumb';
  const isUnicode = /utf-?8/i.test(env.LC_ALL || env.LC_CTYPE || env.LANG || '');
  const names: string[] = [];
  const files: FileState[] = [];
  let drawn = '';
  const draw = () => {
    const line = progressLine(totalOf(files, performance.now()), process.stderr.columns || 80, isUnicode);
    // Written over the last one, so that nothing flickers.
    if (line !== drawn) err(`\r${line}${clearRest}`);
    drawn = line;
  };
  const timer = isBar ? setInterval(draw, redrawMs) : null;
  return {
    /** Adds a file and returns its number. */
    add: (name: string) => {
      names.push(printable(name));
      return files.push({ ...waiting, hasEnded: false, at: 0 }) - 1;
    },
    note: (n: number, progress: FileProgress) => {
      const before = files[n];
      if (before === undefined) return;
      const fraction = Math.max(before.fraction, Math.min(1, progress.fraction));
      files[n] = { ...progress, fraction, hasEnded: false, at: performance.now() };
      if (!isBar && progress.stage !== before.stage)
        err(`${names[n]}: ${progress.stage}, ${Math.floor(fraction * 100)}%\n`);
    },
    /** Notes that the nth file is there, or never will be. */
    end: (n: number) => {
      files[n] = { ...waiting, fraction: 1, hasEnded: true, at: 0 };
    },
    /** Writes a line without disturbing the bar; `out` for standard output. */
    say: (line: string, to: 'out' | 'err' = 'err') => {
      if (drawn) err(clear);
      drawn = '';
      (to === 'out' ? out : err)(`${line}\n`);
    },
    close: () => {
      if (timer !== null) clearInterval(timer);
      if (drawn) err(clear);
      drawn = '';
    },
  };
}

const waiting: FileProgress = { stage: '', fraction: 0, speedBytes: null, leftSeconds: null };

/** Returns the mean of all files, the stage of the first that is open, and the speed and the time of all that are in this stage. */
function totalOf(files: readonly FileState[], now: number): ShownProgress {
  const open = files.filter(({ hasEnded }) => !hasEnded);
  const stage = open.find((file) => file.stage !== '')?.stage ?? 'ask';
  const shown = open.filter((file) => file.stage === stage && now - file.at < staleMs);
  const speeds = shown.flatMap(({ speedBytes }) => speedBytes ?? []);
  // The time of a file that is elsewhere is not known, and without it that of the others would be untrue.
  const times = shown.length === open.length ? shown.map(({ leftSeconds }) => leftSeconds) : [];
  return {
    ended: files.length - open.length,
    total: files.length,
    stage,
    fraction: files.reduce((sum, { fraction }) => sum + fraction, 0) / Math.max(1, files.length),
    speedBytes: speeds.length > 0 ? speeds.reduce((sum, speed) => sum + speed, 0) : null,
    leftSeconds: times.includes(null) || times.length === 0 ? null : Math.max(...times.map(Number)),
  };
}

import { type ClientTerminal, printable } from './client-terminal.ts';
import { progressLine, type ShownProgress } from './progress-line.ts';

/** Progress of one file, from the request to its name in the folder. */
export interface FileProgress {
  readonly stage: string;
  /** 0 to 1; a lower value than before is not shown. */
  readonly fraction: number;
  readonly speedBytes: number | null;
  readonly leftSeconds: number | null;
}

export interface ProgressDisplay {
  /** Adds a file and returns its number. */
  readonly add: (name: string) => number;
  /** Notes the progress of the nth file. */
  readonly note: (n: number, progress: FileProgress) => void;
  /** Notes that the nth file is there, or never will be. */
  readonly end: (n: number) => void;
  /** Writes a line without disturbing the bar; `out` for standard output. */
  readonly say: (line: string, to?: 'out' | 'err') => void;
  readonly close: () => void;
}

const redrawMs = 100;
const clear = '\r\x1b[K';

/** Shows one bar for all files on a terminal, and one line for each new stage of a file elsewhere. */
export function showFiles(terminal: ClientTerminal): ProgressDisplay {
  const { out, err, env } = terminal;
  const isBar = terminal.isWatched && env.TERM !== 'dumb';
  const isUnicode = /utf-?8/i.test(env.LC_ALL || env.LC_CTYPE || env.LANG || '');
  const names: string[] = [];
  const files: (FileProgress & { readonly hasEnded: boolean })[] = [];
  let drawn = '';
  const draw = () => {
    const line = progressLine(totalOf(files), process.stderr.columns || 80, isUnicode);
    if (line !== drawn) err(clear + line);
    drawn = line;
  };
  const timer = isBar ? setInterval(draw, redrawMs) : null;
  return {
    add: (name) => {
      names.push(printable(name));
      return files.push({ ...waiting, hasEnded: false }) - 1;
    },
    note: (n, progress) => {
      const before = files[n];
      if (before === undefined) return;
      const fraction = Math.max(before.fraction, Math.min(1, progress.fraction));
      files[n] = { ...progress, fraction, hasEnded: false };
      if (!isBar && progress.stage !== before.stage)
        err(`${names[n]}: ${progress.stage}, ${Math.floor(fraction * 100)}%\n`);
    },
    end: (n) => {
      files[n] = { ...waiting, fraction: 1, hasEnded: true };
    },
    say: (line, to = 'err') => {
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

/** Returns the mean of all files, the stage of the first that is open, and the time that the slowest of the open ones needs. */
function totalOf(files: readonly (FileProgress & { readonly hasEnded: boolean })[]): ShownProgress {
  const open = files.filter(({ hasEnded }) => !hasEnded);
  const started = open.filter(({ stage }) => stage !== '');
  const speeds = started.flatMap(({ speedBytes }) => speedBytes ?? []);
  // Files that wait here have no time yet, and without it any sum would be untrue.
  const times = started.length === open.length ? started.map(({ leftSeconds }) => leftSeconds) : [null];
  return {
    ended: files.length - open.length,
    total: files.length,
    stage: started[0]?.stage ?? '',
    fraction: files.reduce((sum, { fraction }) => sum + fraction, 0) / Math.max(1, files.length),
    speedBytes: speeds.length > 0 ? speeds.reduce((sum, speed) => sum + speed, 0) : null,
    leftSeconds: times.includes(null) || times.length === 0 ? null : Math.max(...times.map(Number)),
  };
}

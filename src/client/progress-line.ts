/** Progress of everything that a command was asked for, at one moment. */
export interface ShownProgress {
  /** Files whose end is known, of so many. */
  readonly ended: number;
  readonly total: number;
  readonly stage: string;
  /** 0 to 1. */
  readonly fraction: number;
  readonly speedBytes: number | null;
  readonly leftSeconds: number | null;
}

const maxBar = 60;
const minBar = 8;
const stageWidth = 12;

/** Returns one line of at most `columns` - 1 characters; what matters least goes first when there is no room. */
export function progressLine(shown: ShownProgress, columns: number, isUnicode: boolean): string {
  const width = Math.max(1, columns - 1);
  const count = shown.total > 1 ? `${shown.ended}/${shown.total} ` : '';
  const percent = `${Math.floor(shown.fraction * 100)}%`.padStart(4);
  const speed = shown.speedBytes === null ? ''.padEnd(10) : `${writeBytes(shown.speedBytes)}/s`.padStart(10);
  const left = shown.leftSeconds === null ? ''.padEnd(10) : `${writeSeconds(shown.leftSeconds)} left`.padStart(10);
  const stage = shown.stage.slice(0, stageWidth).padEnd(stageWidth);
  const right = [` ${percent} ${speed} ${left}`, ` ${percent} ${left}`, ` ${percent}`];
  const fitting = right.find((text) => count.length + stage.length + 1 + minBar + text.length <= width) ?? percent;
  const room = width - count.length - stage.length - 1 - fitting.length;
  if (room < minBar) return `${count}${percent.trim()} ${shown.stage}`.slice(0, width);
  return `${count}${stage} ${bar(shown.fraction, Math.min(maxBar, room), isUnicode)}${fitting}`.trimEnd();
}

/** Returns a number of bytes in at most 8 characters. */
export function writeBytes(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const value = bytes / 1000 ** power;
  return `${power === 0 || value >= 100 ? Math.floor(value) : value.toFixed(1)} ${units[power]}`;
}

/** Returns a time as 0:05, 12:34 or 3:02:01. */
export function writeSeconds(seconds: number): string {
  const whole = Math.min(359_999, Math.max(0, Math.round(seconds)));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, n) => (n === 0 ? String(part) : String(part).padStart(2, '0'))).join(':');
}

function bar(fraction: number, width: number, isUnicode: boolean): string {
  const [full, empty] = isUnicode ? ['█', '░'] : ['#', '.'];
  const done = Math.floor(Math.min(1, Math.max(0, fraction)) * width);
  return full.repeat(done) + empty.repeat(width - done);
}

/** Progress of everything that a command was asked for, at one moment. */
export interface ShownProgress {
  /** Files whose end is known, of so many. */
  readonly ended: number;
  readonly total: number;
  /** 0 to 1, of everything. */
  readonly fraction: number;
  readonly stage: string;
  /** Speed of the stage, and the time until its end. */
  readonly speedBytes: number | null;
  readonly leftSeconds: number | null;
}

const maxBar = 60;
const minBar = 6;
/** Columns that a terminal needs to show `^C` behind the line without wrapping it. */
const interruptWidth = 2;
/** Room for `convert, 999 KB/s, 59:59 left`, without the speed, and for `queue: 10000`. */
const wordWidths = [30, 20, 12];

/** Returns one line that leaves the last columns free; what matters least goes first when there is no room. */
export function progressLine(shown: ShownProgress, columns: number, isUnicode: boolean): string {
  const width = Math.max(1, columns - 1 - interruptWidth);
  const count = shown.total > 1 ? `${shown.ended}/${shown.total} ` : '';
  const percent = `${Math.floor(shown.fraction * 100)}%`.padStart(5);
  const room = width - count.length - percent.length - 2;
  const wordWidth = wordWidths.find((words) => room - words >= minBar);
  if (wordWidth === undefined) return `${count}${percent.trim()} ${shown.stage}`.slice(0, width).trimEnd();
  const barWidth = Math.min(maxBar, room - wordWidth);
  const words = wordsOf(shown, room - barWidth);
  return `${count}${bar(shown.fraction, barWidth, isUnicode)}${percent}  ${words}`.trimEnd();
}

/** Returns a number of bytes in at most 8 characters. */
export function writeBytes(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const value = bytes / 1000 ** power;
  return `${power === 0 || value >= 100 ? Math.floor(value) : value.toFixed(1)} ${units[power]}`;
}

/** Returns a time as 0:05, 12:34 or 3:02:01. */
function writeSeconds(seconds: number): string {
  const whole = Math.min(359_999, Math.max(0, Math.round(seconds)));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, n) => (n === 0 ? String(part) : String(part).padStart(2, '0'))).join(':');
}

/** Returns the stage with its speed and its time as far as there is room, the time before the speed. */
function wordsOf({ stage, speedBytes, leftSeconds }: ShownProgress, width: number): string {
  const speed = speedBytes === null ? [] : [`${writeBytes(speedBytes)}/s`];
  const left = leftSeconds === null ? [] : [`${writeSeconds(leftSeconds)} left`];
  const choices = [[stage, ...speed, ...left], [stage, ...left], [stage]].map((words) => words.join(', '));
  return (choices.find((words) => words.length <= width) ?? stage).slice(0, width);
}

function bar(fraction: number, width: number, isUnicode: boolean): string {
  const [full, empty] = isUnicode ? ['█', '░'] : ['#', '.'];
  const done = Math.floor(Math.min(1, Math.max(0, fraction)) * width);
  return full.repeat(done) + empty.repeat(width - done);
}

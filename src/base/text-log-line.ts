import { printable } from './terminal.ts';

/** Colours of the levels; the time, the part and the fields are grey. */
const colours = {
  error: '\x1b[31m',
  warn: '\x1b[33m',
  info: '\x1b[32m',
  debug: '\x1b[36m',
} as const;
const grey = '\x1b[90m';
const plain = '\x1b[0m';
/** The part of a role tells more than the role. */
const ownPlace = ['at', 'level', 'text', 'role', 'part'];

/** One line of the log as an object: its redacted fields, in their order. */
export interface LogEntry extends Readonly<Record<string, unknown>> {
  readonly at: string;
  readonly level: keyof typeof colours;
  readonly text: string;
}

/** Returns a line for people: time of day, part, sentence and fields; the level only by its colour, or by its name from `warn` on. */
export function textLine(entry: LogEntry, isColoured: boolean): string {
  const paint = (colour: string, text: string) => (isColoured && text !== '' ? `${colour}${text}${plain}` : text);
  const { at, level, text, role, part } = entry;
  const fields = Object.entries(entry).filter(([name]) => !ownPlace.includes(name));
  const words = [
    paint(grey, new Date(at).toTimeString().slice(0, 8)),
    paint(colours[level], printable(shown(part ?? role ?? '')).padEnd(10)),
    ...(level === 'error' || level === 'warn' ? [paint(colours[level], `${level}:`)] : []),
    printable(text),
    paint(grey, fields.map(([name, value]) => printable(`${name}=${shown(value)}`)).join(' ')),
  ];
  return `${words.filter((word) => word !== '').join(' ')}\n`;
}

function shown(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? '';
  return /[\s"=]/.test(value) ? JSON.stringify(value) : value;
}

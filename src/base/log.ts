import { redactFields, redactText } from './redact.ts';
import { printable } from './terminal.ts';

export const levels = ['error', 'warn', 'info', 'debug'] as const;
export type Level = (typeof levels)[number];
/** Values beside the sentence. The names of the line's own fields are taken. */
export type Fields = Readonly<Record<string, unknown>> & {
  readonly at?: never;
  readonly level?: never;
  readonly text?: never;
};

type Write = (sentence: string, fields?: Fields) => void;

/** Writes lines of a constant lower-case sentence with values beside it. */
export interface Log extends Readonly<Record<Level, Write>> {
  /** Child log: each of its lines carries these fields too. */
  readonly with: (fields: Fields) => Log;
}

/** One line of the log as an object: its redacted fields, in their order. */
interface LogEntry extends Readonly<Record<string, unknown>> {
  readonly at: string;
  readonly level: Level;
  readonly text: string;
}

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
const shownFirst = ['at', 'level', 'text', 'role', 'part'];
const clearLine = '\x1b[K';
/** Control characters, invisible ones such as those of direction, and ends of lines. */
const unprintable = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

export const logFormats = ['auto', 'text', 'json'] as const;
type LogFormat = (typeof logFormats)[number];

type WriteEntry = (entry: LogEntry) => string;

/** Returns how entries are written: for people on a terminal, as one JSON object elsewhere, unless a format is named. */
export function entryWriter(format: LogFormat, screen: { readonly isTTY?: boolean }, hasColours: boolean): WriteEntry {
  const isTerminal = screen.isTTY === true;
  if (format === 'json' || (format === 'auto' && !isTerminal)) return jsonLine;
  // The line may overwrite the longer status line.
  return (entry) => `${isTerminal ? clearLine : ''}${textLine(entry, isTerminal && hasColours)}`;
}

/** Returns a log that writes one line per entry, never a secret, and never throws because of a value. */
export function makeLog(options: {
  level: Level;
  write: (line: string) => void;
  now: () => number;
  line?: WriteEntry;
}): Log {
  const { level: lowest, write, now, line: lineOf = jsonLine } = options;
  const written = levels.slice(0, levels.indexOf(lowest) + 1);
  return makeChild([], (level, sentence, fields) => {
    if (!written.includes(level)) return;
    const head = { at: new Date(now()).toISOString(), level, text: redactText(sentence) };
    // Assigned twice: first for the order, then because a field of the same name must not replace the line's own.
    write(lineOf(Object.assign({}, head, ...fields.map(redactFields), head)));
  });
}

/** JSON escapes the control characters of ASCII alone: a terminal obeys others too. */
function jsonLine(entry: LogEntry): string {
  return `${JSON.stringify(entry).replace(unprintable, escapeCharacter)}\n`;
}

function escapeCharacter(character: string): string {
  // A character beyond 16 bits is two units.
  const units = character.split('');
  return units.map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
}

function makeChild(shared: readonly Fields[], line: (level: Level, sentence: string, fields: Fields[]) => void): Log {
  const at = (level: Level): Write => {
    return (sentence, fields = {}) => line(level, sentence, [...shared, fields]);
  };
  return {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    with: (fields) => makeChild([...shared, fields], line),
  };
}

/** Returns a line for people: time of day, part, sentence and fields; the level only by its colour, or by its name from `warn` on. */
function textLine(entry: LogEntry, isColoured: boolean): string {
  const paint = (colour: string, text: string) => (isColoured && text !== '' ? `${colour}${text}${plain}` : text);
  const { at, level, text, role, part } = entry;
  const fields = Object.entries(entry).filter(([name]) => !shownFirst.includes(name));
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

import { redactFields, redactText } from './redact.ts';
import { type LogEntry, textLine } from './text-log-line.ts';

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

const clearLine = '\x1b[K';
/** Control characters, invisible ones such as those of direction, and ends of lines. */
const unprintable = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

export const logFormats = ['auto', 'text', 'json'] as const;
type LogFormat = (typeof logFormats)[number];

/** Writes one entry as a line. */
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

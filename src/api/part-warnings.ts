import { type NeededPart, Refusal } from '../base/errors.ts';
import { fewLines } from '../base/few-lines.ts';
import type { Log } from '../base/log.ts';

const sentences: Readonly<Record<NeededPart, string>> = {
  redis: 'a request was answered 503: redis did not answer',
  inspector: 'a request was answered 503: the inspector did not answer',
  'object store': 'a request was answered 503: the object store did not answer',
};

/** Warns of the part that made an answer a 503; says nothing of a 503 while every part answers: the process stops, or is busy. */
export type WarnOfPart = (error: unknown, route: string) => void;

/** Returns what writes ten lines a minute for each part: the flood of one that is away hides no other. */
export function warnOfParts(log: Log): WarnOfPart {
  const warn = fewLines(log.warn);
  return (error, route) => {
    if (error instanceof Refusal && error.part !== undefined) warn(sentences[error.part], { route, error });
  };
}

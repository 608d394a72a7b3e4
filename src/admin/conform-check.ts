import { isDeepStrictEqual } from 'node:util';
import { refusals } from '../base/errors.ts';
import { answerFault } from '../model/answer-fault.ts';
import { type ConformAnswer, type ConformClient, pick } from './conform-client.ts';

export type Verdict =
  | { readonly verdict: 'ok' }
  | { readonly verdict: 'fails'; readonly wanted: string; readonly saw: string }
  | { readonly verdict: 'not judged'; readonly why: string };

/** One row of the contract and how it is seen from outside. */
export interface Check {
  /** As in docs/contract.md. */
  readonly id: string;
  readonly sentence: string;
  /** Credits that it may spend on the film of --media-url; `null` when it needs no film. */
  readonly credits: number | null;
  readonly run: (ask: ConformClient) => Promise<Verdict>;
}

/** Ends a check with its verdict. */
class CheckEnd extends Error {
  readonly judgement: Verdict;

  constructor(judgement: Verdict) {
    super(judgement.verdict);
    this.judgement = judgement;
  }
}

const maxShownChars = 300;

/** Makes a row from a check that returns when all is well, and throws through `want`, `same`, `refused` or `skipRow`. */
export function check(
  id: string,
  sentence: string,
  judge: (ask: ConformClient) => Promise<void>,
  credits: number | null = null,
): Check {
  const run = async (ask: ConformClient): Promise<Verdict> => {
    if (credits !== null && ask.mediaUrl === null) return { verdict: 'not judged', why: 'it needs --media-url' };
    try {
      await judge(ask);
      return { verdict: 'ok' };
    } catch (error) {
      if (error instanceof CheckEnd) return error.judgement;
      return { verdict: 'fails', wanted: 'an answer', saw: sentenceOf(error) };
    }
  };
  return { id, sentence, credits, run };
}

/** Makes a row for a decision that cannot be seen from outside. */
export function notVisible(id: string, sentence: string, why: string): Check {
  return { id, sentence, credits: null, run: async () => ({ verdict: 'not judged', why }) };
}

/** Fails the row unless `holds`. */
export function want(holds: boolean, wanted: string, saw: unknown): void {
  if (holds) return;
  const isBlocked = isAnswer(saw) && saw.headers.get('x-error-code') === 'ip_blocked';
  if (isBlocked) skipRow('this address is blocked for its failed authentications (D38)');
  throw new CheckEnd({ verdict: 'fails', wanted, saw: show(saw) });
}

/** Fails the row unless both values are deeply equal. */
export function same(saw: unknown, wanted: unknown, what: string): void {
  want(isDeepStrictEqual(saw, wanted), `${what} ${show(wanted)}`, saw);
}

/** Leaves the row unjudged: the state of deployment, account or key does not allow it. */
export function skipRow(why: string): never {
  throw new CheckEnd({ verdict: 'not judged', why });
}

/** Fails the row unless the value follows this schema of the OpenAPI document and has these optional fields besides. */
export function hasShape(
  value: unknown,
  schema: Parameters<typeof answerFault>[0],
  subject: string,
  fields: readonly string[] = [],
): void {
  const fault = answerFault(schema, value);
  if (fault)
    want(false, `${subject}.${fault.path} that ${fault.problem}`, fault.path ? pick(value, fault.path) : value);
  for (const name of fields) want(pick(value, name) !== undefined, `${subject}.${name}`, value);
}

/** Fails the row unless the answer has this status and is JSON; returns its body. */
export function answered(answer: ConformAnswer, status: number): unknown {
  want(answer.status === status, String(status), answer);
  want(/^application\/json\b/.test(answer.headers.get('content-type') ?? ''), `${status} as JSON`, answer);
  return answer.json;
}

/** Fails the row unless the answer is exactly this refusal: status, code, one text field as body, sentence. */
export function refused(
  answer: ConformAnswer,
  code: keyof typeof refusals,
  sentence: string | RegExp = refusals[code].sentence,
  status: number = refusals[code].status,
): void {
  const body = answered(answer, status) as Readonly<Record<string, unknown>> | null;
  const error = body?.error;
  want(typeof error === 'string' && Object.keys(body ?? {}).length === 1, 'a body of one text field, error', answer);
  const fits = typeof sentence === 'string' ? error === sentence : sentence.test(String(error));
  want(fits, `the error ${sentence}`, error);
  same(answer.headers.get('x-error-code'), code, 'x-error-code');
}

/** Fails the row unless a header of the answer fits the pattern. */
export function headed({ headers }: ConformAnswer, name: string, pattern: RegExp): void {
  const value = headers.get(name);
  want(pattern.test(value ?? ''), `${name} that fits ${pattern}`, value);
}

/** Returns a value as text for a verdict, at most 300 characters. */
function show(value: unknown): string {
  const text = isAnswer(value) ? `${value.status} ${value.text}`.trim() : (JSON.stringify(value) ?? 'nothing');
  return text.length > maxShownChars ? `${text.slice(0, maxShownChars)}…` : text;
}

function isAnswer(value: unknown): value is ConformAnswer {
  return typeof value === 'object' && value !== null && 'status' in value && 'text' in value && 'headers' in value;
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

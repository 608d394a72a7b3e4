import type { Request, Response } from 'express';
import type { KeyText } from '../model/api-key.ts';
import { type Flags, parseFlags } from '../model/request-parameters.ts';
import type { Rates, Refused } from '../store/access/authorize.ts';
import { enter } from '../store/access/authorize.ts';
import type { RecordStore } from '../store/script.ts';
import { type Reply, refusal, refusedReply, type Statuses } from './reply.ts';

/** One request whose key has the right form. */
export interface Ask {
  readonly req: Request;
  readonly res: Response;
  readonly key: KeyText;
  /** Query and body merged, without the key (D96). */
  readonly given: Readonly<Record<string, unknown>>;
  /** What is wrong with the body, if something is. */
  readonly fault: string | null;
  readonly ip: string;
  /** What whoever answers by himself sends too: names and values by turns. */
  readonly headers: readonly string[];
  /** When the request came, by the monotonic clock. */
  readonly began: number;
  /** Waits for work that costs nothing meanwhile: the request is not in hand as long. */
  readonly idle: <T>(work: () => Promise<T>) => Promise<T>;
}

export type Handler = (ask: Ask) => Promise<Reply | null>;

/** What a free call goes on with once the record has let it in. */
export interface Entered {
  readonly rates: Rates;
  readonly mayReadStats: boolean;
  readonly flags: Flags;
}

/** Lets a free call in by its key and rate, then judges the global parameters; or answers the refusal. */
export async function enterFree(
  store: RecordStore,
  ask: Ask,
  statuses: Statuses,
): Promise<{ entered: Entered } | { reply: Reply }> {
  const answer = await enter(store, ask.key);
  if ('refused' in answer) return { reply: refusedReply(answer, statuses) };
  const flags = judgeFlags(ask);
  if ('reply' in flags) return { reply: { ...flags.reply, rates: answer.rates } };
  return { entered: { ...answer, flags: flags.flags } };
}

/** The global parameters of a call that was let in, or the answer that refuses them. */
export function judgeFlags(ask: Ask): { flags: Flags } | { reply: Reply } {
  const flags = parseFlags(ask.given);
  const sentence = ask.fault ?? (flags.ok ? null : flags.sentence);
  if (sentence !== null || !flags.ok) return { reply: refusal('bad_request', sentence ?? undefined) };
  return { flags };
}

/** A refusal of the record, or `null`. */
export function isRefused(answer: object): answer is Refused {
  return 'refused' in answer;
}

import type { Endpoint } from '../../model/job.ts';
import { channels, keys } from '../keys.ts';
import { bookKeys, rolling } from '../money/roll-period.ts';
import { type RecordStore, type Reply, run, text } from '../script.ts';
import { admit as admitScript } from '../scripts/admit.ts';
import { charge as chargeScript } from '../scripts/charge.ts';
import { release as releaseScript } from '../scripts/release.ts';
import { together } from '../together.ts';
import { type Caller, doorKeys, type Rates, type Refused, readRates, readRefused } from './authorize.ts';

/** An Idempotency-Key, hashed, and the text of the request it stands for. */
export interface Repeat {
  readonly key: string;
  readonly request: string;
}

/** What the record keeps of a job from its admission. */
export interface NewJob {
  readonly endpoint: Endpoint;
  readonly method: string;
  readonly path: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly ip: string;
  readonly webhook: { readonly url: string; readonly receiver: string; readonly authorization: string } | null;
}

/** One call of a credit endpoint: what is asked, whether its parameters are fine, and what is to be recorded. */
export interface Call {
  readonly id: string;
  readonly valid: boolean;
  /** Whether the record has room for more (the gate at 85 % of its memory). */
  readonly room: boolean;
  readonly repeat: Repeat | null;
  /** A job to queue, or for how many milliseconds a synchronous call may hold its credit. */
  readonly work: NewJob | { readonly holdMilliseconds: number };
}

export type Admission =
  | { readonly admitted: string; readonly held: number; readonly rates: Rates }
  | { readonly repeated: string; readonly answer: string; readonly rates: Rates }
  | Refused;

/** What the step is told of a call: the keys of its job and of its repeat, and its words. */
interface Told {
  readonly keys: readonly [job: string, repeats: string];
  readonly words: readonly string[];
}

/** Admits a call in one atomic step, or refuses it (D10). */
export async function admit(store: RecordStore, caller: Caller, call: Call): Promise<Admission> {
  const told: Told = { keys: [keys.job(call.id), repeatKey(caller.account, call.repeat)], words: wordsOf(call) };
  return readAdmission(await judgeTogether(store, caller, told));
}

const judgeTogether = together<Told>(judge);

function judge(store: RecordStore, caller: Caller, calls: readonly Told[]): Promise<Reply> {
  return rolling(store, caller.account, () =>
    run(
      store,
      admitScript,
      {
        ...doorKeys(caller),
        queue: keys.queue(caller.account),
        ready: keys.ready,
        turn: keys.turn,
        quota: keys.quota(caller.hash),
        jobs: keys.jobs(caller.account),
        open: keys.open(caller.account),
        calls: keys.calls,
      },
      { accountId: caller.account, workChannel: channels.work },
      { keys: calls.flatMap((call) => call.keys), args: calls.flatMap((call) => call.words) },
    ),
  );
}

/** The words of a call in the order that the step expects. */
function wordsOf({ id, valid, room, repeat, work }: Call): string[] {
  const job = 'endpoint' in work ? jobWords(work) : null;
  return [
    job ? 'job' : 'call',
    id,
    valid ? '1' : '',
    room ? '1' : '',
    'holdMilliseconds' in work ? String(work.holdMilliseconds) : '',
    repeat?.key ?? '',
    repeat?.request ?? '',
    ...(job ?? ['', '', '', '']),
  ];
}

function readAdmission(reply: Reply): Admission {
  const word = text(reply[0]);
  if (word === 'admitted') return { admitted: text(reply[1]), held: Number(reply[7]), rates: readRates(reply) };
  if (word === 'repeated') return { repeated: text(reply[1]), answer: text(reply[2]), rates: readRates(reply) };
  const refused = readRefused(reply);
  if (!refused) throw new Error(`admit answered ${word}`);
  return refused;
}

/** A synchronous call that is about to end. */
export interface CallInHand {
  readonly id: string;
  readonly account: string;
  readonly endpoint: Endpoint;
  readonly repeat: Repeat | null;
}

/** Charges a synchronous call right before its answer; 'gone' when its hold has ended, then nothing is charged. */
export async function chargeCall(
  store: RecordStore,
  call: CallInHand & { keyId: string; line: string; ip: string; answer: string },
  tookMilliseconds: number,
): Promise<string | 'gone'> {
  const reply = await rolling(store, call.account, () =>
    run(
      store,
      chargeScript,
      {
        ...bookKeys(call.account),
        calls: keys.calls,
        paidLines: keys.paidLines(call.keyId),
        stats: keys.stats(call.endpoint),
        repeats: repeatKey(call.account, call.repeat),
      },
      {
        accountId: call.account,
        id: call.id,
        endpoint: call.line,
        took: Math.round(tookMilliseconds),
        ip: call.ip,
        answer: call.answer,
      },
    ),
  );
  return text(reply[0]) === 'charged' ? text(reply[1]) : 'gone';
}

/** Gives the hold of a synchronous call back, once; `log` is the status it was answered with, `null` when nobody was. */
export async function releaseCall(
  store: RecordStore,
  call: CallInHand,
  log: number | null,
  tookMilliseconds = 0,
): Promise<boolean> {
  const [word] = await run(
    store,
    releaseScript,
    {
      account: keys.account(call.account),
      calls: keys.calls,
      stats: keys.stats(call.endpoint),
      repeats: repeatKey(call.account, call.repeat),
    },
    { accountId: call.account, id: call.id, log: log ?? '', took: Math.round(tookMilliseconds) },
  );
  return word === 'released';
}

function repeatKey(account: string, repeat: Repeat | null): string {
  return keys.repeat(account, repeat?.key ?? 'none');
}

/**
 * What the job's hash takes over: what only this process reads is one text; the steps that end a job read the others.
 */
function jobWords({ endpoint, method, path, args, ip, webhook }: NewJob): string[] {
  const asked = { endpoint, path, args, webhook_url: webhook?.url ?? '', authorization: webhook?.authorization ?? '' };
  const words = [JSON.stringify(asked), `${method} ${path}`, ip, webhook?.receiver ?? ''];
  // Half a character would arrive as another one.
  const texts = [...words, asked.webhook_url, asked.authorization];
  if (!texts.every((text) => text.isWellFormed())) throw new Error('a job with half a character cannot be recorded');
  return words;
}

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { seed as usualSeed } from '../seed.ts';
import { root } from '../tree.ts';

/** Where failing inputs are kept. */
export const findings = join(root, '.cache', 'fuzz');

/** Target of a fuzzer: what it is sent, and what must hold of each input. */
export interface FuzzTarget<T> {
  readonly name: string;
  readonly input: fc.Arbitrary<T>;
  /** Rejects when the target broke; `hangMs` later it counts as hanging. */
  readonly run: (input: T) => Promise<void>;
  readonly hangMs?: number;
}

export interface Campaign {
  readonly executions: number;
  readonly seed: number;
}

/** A failing input that an earlier run wrote out; `FUZZ_REPEAT` names its file. */
interface Finding {
  readonly target: string;
  readonly seed: number;
  readonly path: string;
}

const defaultMinutes = 30;
/** Times of all campaigns together, in units of one. */
const longShares = 5.4;
const defaultHangMs = 20_000;
/** More than any machine runs in the time of a campaign. */
const endless = 1_000_000_000;

/** Milliseconds for each of the targets of the long form: `FUZZ_MINUTES` (30) for all together. */
export const longMs = (Number(process.env.FUZZ_MINUTES ?? defaultMinutes) * 60_000) / longShares;

/** Mocha's limit for a campaign: it only ends hangs, shrinking a failing input included. */
export function limitOf(ms: number): number {
  return 3 * ms + 300_000;
}

/**
 * Sends inputs to the target for some time, with the seed of all tests. A failing input is shrunk and written to
 * `.cache/fuzz`; `FUZZ_REPEAT=FILE` sends it again.
 */
export async function fuzz<T>(
  { name, input, run, hangMs = defaultHangMs }: FuzzTarget<T>,
  ms: number,
): Promise<Campaign> {
  const repeated = readFinding(name);
  const seed = repeated?.seed ?? usualSeed;
  const faults = catchFaults();
  const property = fc.asyncProperty(input, faults.during(run));
  const began = performance.now();
  const first = await fc.check(property, {
    ...(repeated === null ? { numRuns: 1 } : { path: repeated.path, endOnFailure: true }),
    seed,
    timeout: hangMs,
  });
  const isOver = first.failed || repeated !== null || process.env.FUZZ_REPEAT !== undefined;
  const interruptAfterTimeLimit = isOver ? 0 : ms - (performance.now() - began);
  // On a busy machine the first input alone may take all of the time.
  const more =
    interruptAfterTimeLimit > 0
      ? await fc.check(property, { numRuns: endless, interruptAfterTimeLimit, seed, timeout: hangMs })
      : first;
  const details = more.numRuns === 0 ? first : more;
  faults.release();
  const campaign = { executions: details.numRuns, seed };
  if (!details.failed) return campaign;
  const file = join(findings, `${name}-${seed}.json`);
  const error = String(details.errorInstance ?? 'interrupted');
  const found = {
    target: name,
    seed,
    path: details.counterexamplePath,
    error,
    input: fc.stringify(details.counterexample),
  };
  mkdirSync(findings, { recursive: true });
  writeFileSync(file, `${JSON.stringify(found, null, 1)}\n`);
  throw new Error(
    `${name}: execution ${details.numRuns} failed, FUZZ_REPEAT=${file} repeats it: ${error}\n${found.input.slice(0, 4000)}`,
  );
}

/** Prints what a campaign did, for the log of a long run. */
export function report(name: string, { executions, seed }: Campaign): void {
  console.log(`fuzz ${name}: ${executions} executions, SEED=${seed}`);
}

function readFinding(target: string): Finding | null {
  const file = process.env.FUZZ_REPEAT;
  if (!file?.endsWith('.json')) return null;
  const found = JSON.parse(readFileSync(file, 'utf8')) as Finding;
  return found.target === target ? found : null;
}

/** Hears exceptions and rejections that nobody catches, in place of Mocha, so that they count against the input that caused them. */
function catchFaults() {
  const events = ['uncaughtException', 'unhandledRejection'] as const;
  const others = events.map((event) => [event, process.rawListeners(event)] as const);
  let fault = Promise.withResolvers<never>();
  const onFault = (error: unknown) => fault.reject(error);
  for (const event of events) process.removeAllListeners(event).on(event, onFault);
  return {
    during:
      <T>(run: (input: T) => Promise<void>) =>
      async (input: T) => {
        fault = Promise.withResolvers<never>();
        // Without a fault nobody waits for it.
        fault.promise.catch(() => undefined);
        // A rejection that nobody catches is told of after the microtasks.
        const settled = run(input).then(() => new Promise<void>((resolve) => setImmediate(resolve)));
        await Promise.race([settled, fault.promise]);
      },
    release: () => {
      for (const [event, listeners] of others) {
        process.removeAllListeners(event);
        for (const listener of listeners) process.on(event, listener as () => void);
      }
    },
  };
}

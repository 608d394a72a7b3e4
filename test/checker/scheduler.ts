/** A sequence of numbers that decides everything in a history; after its end every decision is the first choice. */
export interface Choices {
  /** Returns a number from 0 to `count` - 1. */
  pick(count: number): number;
  readonly isOver: () => boolean;
}

export function choicesOf(tape: readonly number[]): Choices {
  let used = 0;
  return {
    pick: (count) => (tape[used++] ?? 0) % count,
    isOver: () => used >= tape.length,
  };
}

/** A process of the simulated service. */
export interface Owner {
  readonly name: string;
  /** A process that is dead gets no answer, and nothing of it happens any more. */
  isDead: boolean;
  /** Nothing of a process that is paused happens until it goes on: its lease may end meanwhile. */
  isPaused: boolean;
}

/** Fates of a call; a call that is idempotent at a server that may get it twice can also be doubled. */
type Fate = 'answered' | 'request lost' | 'answer lost' | 'late' | 'doubled';
const fates: readonly Fate[] = ['answered', 'answered', 'answered', 'answered', 'answered', 'answered'];
const faults: readonly Fate[] = ['request lost', 'answer lost', 'late', 'doubled'];

interface PendingCall {
  readonly owner: Owner;
  readonly what: string;
  readonly isRepeatable: boolean;
  readonly run: () => Promise<unknown>;
  readonly answer: (value: unknown) => void;
  readonly fail: (wasSent: boolean) => void;
}

/** Lets one call happen at a time, in an order and with a fate that the choices decide. */
export class Scheduler {
  readonly #choices: Choices;
  readonly log: string[] = [];
  #pending: PendingCall[] = [];
  #hasFaults = true;

  constructor(choices: Choices) {
    this.#choices = choices;
  }

  /** Ends every call that waits, as a caller does whose time for an answer is over; the call may have happened. */
  async expire(): Promise<void> {
    const late = this.#pending.filter(({ owner }) => !owner.isPaused && !owner.isDead);
    this.#pending = this.#pending.filter(({ owner }) => owner.isPaused);
    for (const call of late) {
      const happens = call.isRepeatable && this.#choices.pick(2) === 1;
      // Whoever asked is told below that the call failed.
      if (happens) await call.run().catch(() => {});
      call.fail(happens);
    }
    if (late.length > 0) this.log.push(`${late.length} calls were not answered in time`);
    await settle();
  }

  /** From now on every call is answered, in the order in which they were made. */
  endFaults(): void {
    this.#hasFaults = false;
  }

  /** Makes a call of a process: it happens, and is answered, when the scheduler chooses it. `errorOf` makes the error of a lost call. */
  call<T>(
    owner: Owner,
    what: string,
    run: () => Promise<T>,
    errorOf: (wasSent: boolean) => Error,
    isRepeatable = false,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (owner.isDead) return;
      this.#pending.push({
        ...{ owner, what, isRepeatable, run, answer: (value) => resolve(value as T) },
        fail: (wasSent) => reject(errorOf(wasSent)),
      });
    });
  }

  /** Lets one call happen; returns false when there is none. */
  async step(): Promise<boolean> {
    this.#pending = this.#pending.filter(({ owner }) => !owner.isDead);
    const able = this.#pending.filter(({ owner }) => !owner.isPaused);
    const chosen = able[this.#hasFaults ? this.#choices.pick(able.length || 1) : 0];
    if (chosen === undefined) return false;
    this.#pending.splice(this.#pending.indexOf(chosen), 1);
    const fate = this.#fateOf(chosen);
    this.log.push(`${chosen.owner.name}: ${chosen.what}${fate === 'answered' ? '' : `, ${fate}`}`);
    await this.#carryOut(chosen, fate);
    await settle();
    return true;
  }

  #fateOf({ isRepeatable }: PendingCall): Fate {
    if (!this.#hasFaults) return 'answered';
    const all = [...fates, ...fates, ...faults];
    const fate = all[this.#choices.pick(all.length)]!;
    return fate === 'doubled' && !isRepeatable ? 'answered' : fate;
  }

  async #carryOut(call: PendingCall, fate: Fate): Promise<void> {
    if (fate === 'request lost') return call.fail(false);
    // The second run is the one that is answered.
    if (fate === 'doubled') await call.run().catch(() => {});
    const result = await call.run().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    if (fate === 'answer lost') return call.fail(true);
    const deliver = () => {
      if ('error' in result) this.#throwInto(call, result.error);
      else call.answer(result.value);
    };
    if (fate !== 'late') return deliver();
    // Its answer is a call of its own, which happens whenever the scheduler chooses it.
    const answer = async () => deliver();
    this.#pending.push({ ...call, what: `answer to ${call.what}`, isRepeatable: false, run: answer, answer: () => {} });
  }

  #throwInto({ answer }: PendingCall, error: unknown): void {
    answer(Promise.reject(error));
  }
}

/** Waits until everything that an answer caused has made its next call. */
export async function settle(): Promise<void> {
  for (let n = 0; n < 3; n++) await new Promise((resolve) => setImmediate(resolve));
}

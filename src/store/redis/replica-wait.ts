import { setImmediate as nextTurn } from 'node:timers/promises';

/** Longest time for which an answer waits for a replica. */
export const replicaMs = 1_000;

/**
 * Waits until a replica has what was written on one connection, with one WAIT for everything that was sent since the last.
 * Redis answers nothing else on the connection meanwhile, so the next WAIT is sent only when the last one has ended.
 */
export class ReplicaWait {
  readonly #wait: () => Promise<unknown>;
  #next: Promise<boolean> | undefined;
  #last: Promise<unknown> | undefined;

  /** `wait` sends WAIT and returns the number of replicas that have everything. */
  constructor(wait: () => Promise<unknown>) {
    this.#wait = wait;
  }

  /** Called right before a command is sent; resolves whether a replica has its change. */
  cover(): Promise<boolean> {
    this.#next ??= this.#begin(this.#last ? this.#last.then(() => nextTurn()) : nextTurn());
    return this.#next;
  }

  /** In the turn that begins now more may be sent: all of it has one WAIT, which leaves in the same packet. */
  async #begin(turn: Promise<unknown>): Promise<boolean> {
    await turn;
    this.#next = undefined;
    const waiting = this.#wait();
    this.#last = waiting.then(
      () => {},
      () => {},
    );
    try {
      return Number(await waiting) > 0;
    } finally {
      if (this.#next === undefined) this.#last = undefined;
    }
  }
}

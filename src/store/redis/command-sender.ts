import { Refusal, refuse } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Place } from './discovery.ts';
import { Link } from './reconnecting-connection.ts';
import { type Client, isReply } from './redis-client.ts';
import { inTime, Late } from './timeout.ts';

/** One call that is under way. */
export interface Call {
  /** Whether it was answered, or given up. */
  isOver: boolean;
  /** The connection that it used last. */
  client?: Client;
  /** Why it was sent to another node. */
  error?: Error;
}

const retryAfterSeconds = 2;
/** What Redis answers when it cannot do it now. */
const busy = /^(LOADING|READONLY|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|MISCONF|OOM|BUSY)\b/;
/** What it answers when it did nothing and another node may. */
const elsewhere = /^(READONLY|MOVED|CLUSTERDOWN|MASTERDOWN)\b/;

/** Makes calls to the record, each of which answers, or fails with `unavailable` and its cause, within two seconds. */
export class Caller {
  readonly #place: Place;
  readonly #link: Link;
  #sent = 0;

  constructor(place: Place, log: Log) {
    this.#place = place;
    this.#link = new Link(place, log);
  }

  /** Waits for the first connection. */
  async open(): Promise<void> {
    await this.make(() => this.#link.present()).catch((late: Refusal) => {
      // It fails now; what is still under way ends by itself.
      void this.#link.close();
      throw unavailable(this.#link.cause() ?? late.cause, `Redis cannot be reached at ${this.#place.name}`);
    });
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  isReady(): boolean {
    return this.#link.client() !== undefined;
  }

  /** How many commands were sent. */
  sent(): number {
    return this.#sent;
  }

  /** Gives a call its time. */
  async make<T>(work: (call: Call) => Promise<T>): Promise<T> {
    const call: Call = { isOver: false };
    try {
      return await inTime(work(call));
    } catch (error) {
      if (!(error instanceof Late)) throw meansAway(error) ? unavailable(error) : error;
      if (call.client) this.#link.suspect(call.client, error);
      throw unavailable(call.error ?? error);
    } finally {
      call.isOver = true;
    }
  }

  /**
   * Sends one command of a call, and to another node when Redis did nothing but refuse it. One that runs a script which Redis
   * does not know is followed by the one that carries it.
   */
  async send(call: Call, command: readonly string[], carrying?: () => string[]): Promise<unknown> {
    let client = this.#link.client();
    let next = command;
    for (;;) {
      if (!client || call.isOver) throw call.error ?? this.#link.cause() ?? new Error('There is no connection');
      call.client = client;
      this.#sent += 1;
      try {
        const reply = await client.sendCommand(next);
        this.#link.noteAnswer();
        return reply;
      } catch (error) {
        if (isReply(error)) this.#link.noteAnswer();
        if (carrying && next === command && isReply(error, /^NOSCRIPT/)) {
          next = carrying();
          continue;
        }
        if (!isReply(error, elsewhere)) throw error;
        if (isReply(error, /^MOVED/)) this.#place.moved();
        call.error = error;
        this.#link.leave(client);
        client = await this.#link.present();
      }
    }
  }
}

/** Whether an error means that Redis is away, and not that a command or a reply is wrong. */
function meansAway(error: unknown): boolean {
  if (isReply(error)) return isReply(error, busy);
  return !(error instanceof Refusal || error instanceof TypeError);
}

function unavailable(cause: unknown, sentence?: string): Refusal {
  const reason = sentence && cause instanceof Error ? `${sentence}: ${cause.message}` : sentence;
  return Object.assign(refuse('unavailable', reason, retryAfterSeconds), { cause });
}

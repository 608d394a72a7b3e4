import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import type { Connection } from '../../src/store/redis/connection.ts';

/** Calls of Redis that one HTTP request made; those that were sent together are one. */
export interface CountedRequest {
  readonly method: string;
  readonly path: string;
  calls: number;
}

interface Counting extends CountedRequest {
  together: Promise<unknown>[] | null;
}

const channel = 'http.server.request.start';
const counted = ['eval', 'read', 'readAll', 'readBytes', 'send'] as const;

/** Counts the calls of Redis that each request of a server in this process makes through a connection. */
export class RedisCalls {
  readonly requests: CountedRequest[] = [];
  readonly #current = new AsyncLocalStorage<Counting>();

  begin(): void {
    subscribe(channel, this.#enter);
  }

  end(): void {
    unsubscribe(channel, this.#enter);
  }

  readonly #enter = (message: unknown): void => {
    const { method = '', url = '' } = (message as { request: IncomingMessage }).request;
    const request = { method, path: url.split('?')[0]!, calls: 0, together: null };
    this.requests.push(request);
    this.#current.enterWith(request);
  };

  /** Returns a connection that counts. Calls of one moment are answered at one moment, so that no chance tells how many there are. */
  through(connection: Connection): Connection {
    const others = Object.fromEntries(
      counted.map((name) => {
        const call = connection[name] as (...given: unknown[]) => Promise<unknown>;
        return [name, (...given: unknown[]) => this.#join(() => call.apply(connection, given))];
      }),
    );
    return { ...connection, ...others };
  }

  #join<T>(call: () => Promise<T>): Promise<T> {
    const request = this.#current.getStore();
    if (request === undefined) return call();
    if (request.together === null) {
      request.calls++;
      request.together = [];
      setImmediate(() => {
        request.together = null;
      });
    }
    const [own, together] = [call(), request.together];
    together.push(own);
    return new Promise<void>((resolve) => setImmediate(resolve))
      .then(() => Promise.allSettled(together))
      .then(() => own);
  }
}

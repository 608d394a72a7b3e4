import { StringDecoder } from 'node:string_decoder';
import type { Dispatcher } from 'undici';

/** Nothing was answered in time. */
export class Silence extends Error {
  constructor() {
    super('The API server does not answer');
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Nothing of an answer that was listened to. */
  readonly text: string;
}

/** Hears an answer that goes on. What it throws ends it. */
export interface Listener {
  begun(): void;
  hear(piece: string): void;
}

interface Limits {
  /** For the whole answer; of one that is listened to only for its beginning. */
  readonly milliseconds: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends one request and reads what comes back, straight from the connection: streams and promises between would be a third of
 * what it costs. Ends in time also when no connection is had.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { milliseconds, signal }: Limits,
  listener?: Listener,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const decoder = new StringDecoder('utf8');
  let answer: Answer = { status: 0, headers: {}, text: '' };
  let control: Dispatcher.DispatchController | null = null;
  let failure: Error | null = null;
  const fail = (error: Error) => {
    failure = error;
    reject(error);
    control?.abort(error);
  };
  const timer = setTimeout(() => fail(new Silence()), milliseconds);
  const leave = () => fail(signal?.reason);
  const isHeard = () => listener !== undefined && answer.status < 300;
  signal?.addEventListener('abort', leave, { once: true });
  if (signal?.aborted) leave();
  dispatcher.dispatch(request, {
    onRequestStart(given) {
      control = given;
      if (failure) given.abort(failure);
    },
    onResponseStart(_, status, headers) {
      answer = { status, headers, text: '' };
      if (!isHeard()) return;
      clearTimeout(timer);
      listener?.begun();
    },
    onResponseData(_, chunk) {
      const piece = decoder.write(chunk);
      if (isHeard()) listener?.hear(piece);
      else answer = { ...answer, text: answer.text + piece };
    },
    onResponseEnd: () => resolve(answer),
    onResponseError: (_, error) => reject(error),
  });
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  });
}

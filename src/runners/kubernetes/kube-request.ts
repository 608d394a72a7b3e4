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
  readonly text: string;
}

/** Who waits for an answer. What it throws ends that. */
export interface Waiting {
  /** For the whole answer; of one that goes on only for its beginning. */
  readonly milliseconds: number;
  readonly signal?: AbortSignal | undefined;
  /** The answer begins. */
  readonly begun: (status: number) => void;
  /** Hears an answer that goes on, unless it is a refusal; its text is empty then. */
  readonly piece?: ((text: string) => void) | undefined;
}

/**
 * Sends one request and reads what comes back, straight from the connection: streams and promises between would be a third of
 * what it costs. Ends in time also when no connection is had.
 */
export async function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { milliseconds, signal, begun, piece }: Waiting,
): Promise<Answer> {
  signal?.throwIfAborted();
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
  const goesOn = () => piece !== undefined && answer.status < 300;
  signal?.addEventListener('abort', leave, { once: true });
  dispatcher.dispatch(request, {
    onRequestStart(given) {
      control = given;
      if (failure) given.abort(failure);
    },
    onResponseStart(_, status, headers) {
      // Only a hint that the answer comes later.
      if (status < 200) return;
      answer = { status, headers, text: '' };
      if (goesOn()) clearTimeout(timer);
      begun(status);
    },
    onResponseData(_, chunk) {
      const text = decoder.write(chunk);
      if (goesOn()) piece?.(text);
      else answer = { ...answer, text: answer.text + text };
    },
    onResponseEnd: () => resolve(answer),
    onResponseError: (_, error) => reject(error),
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  }
}

import { StringDecoder } from 'node:string_decoder';
import type { Dispatcher } from 'undici';

export class NoAnswerError extends Error {
  constructor() {
    super('The API server does not answer');
  }
}

export interface KubeAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface AnswerLimits {
  /** Time limit of the whole answer; of a streamed one only until its headers. */
  readonly timeoutMs: number;
  /** Called again and again until the answer is there; the request fails when a call rejects. */
  readonly late?: { readonly everyMs: number; readonly mayWait: () => Promise<unknown> };
}

/** Reads the lines of a streamed answer, unless it is a refusal; what it throws ends the request. */
export interface StreamReader {
  onStart(): void;
  line(text: string): void;
}

interface AnswerOptions extends AnswerLimits {
  readonly signal?: AbortSignal | undefined;
  /** Called when an answer begins that is not streamed. */
  readonly onStart: () => void;
  readonly reader?: StreamReader | undefined;
}

/** Sends one request and reads its answer. The time limit holds even while no connection is free. */
export async function sendKubeRequest(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, late, signal, onStart, reader }: AnswerOptions,
): Promise<KubeAnswer> {
  signal?.throwIfAborted();
  const answered = Promise.withResolvers<KubeAnswer>();
  let controller: Dispatcher.DispatchController | undefined;
  let failure: Error | undefined;
  const fail = (error: Error) => {
    failure = error;
    controller?.abort(error);
    answered.reject(error);
  };
  const abort = () => fail(signal?.reason);
  let isWaiting = true;
  const giveUp = () => isWaiting && fail(new NoAnswerError());
  const timer = afterRunning(timeoutMs, giveUp);
  const checks = late && setInterval(() => void late.mayWait().catch(giveUp), late.everyMs);
  const endWait = () => {
    isWaiting = false;
    clearInterval(timer);
    clearInterval(checks);
  };
  signal?.addEventListener('abort', abort);
  const decoder = new StringDecoder('utf8');
  let answer = { status: 0, headers: {}, text: '' };
  let take = (text: string) => {
    answer.text += text;
  };
  dispatcher.dispatch(request, {
    onRequestStart(begun) {
      controller = begun;
      // It has failed while no connection was free.
      if (failure) begun.abort(failure);
    },
    onResponseStart(_, status, headers) {
      // Not the answer yet, such as early hints.
      if (status < 200) return;
      answer = { status, headers, text: '' };
      if (!reader) return onStart();
      if (status >= 300) return;
      endWait();
      reader.onStart();
      take = splitLines(reader.line);
    },
    onResponseData: (_, bytes) => take(decoder.write(bytes)),
    onResponseEnd: () => answered.resolve(answer),
    onResponseError: (_, error) => answered.reject(error),
  });
  try {
    return await answered.promise;
  } finally {
    endWait();
    signal?.removeEventListener('abort', abort);
  }
}

/**
 * Calls `late` once this process has run for so long. Timers fire before anything is read: of a halt, during which the answer may have
 * arrived, at most an eighth of the limit counts.
 */
function afterRunning(limitMs: number, late: () => void): NodeJS.Timeout {
  let eighths = 0;
  return setInterval(() => ++eighths === 8 && late(), limitMs / 8);
}

function splitLines(line: (text: string) => void): (piece: string) => void {
  let rest: string[] = [];
  return (piece) => {
    const [first = '', ...more] = piece.split('\n');
    rest.push(first);
    for (const next of more) {
      const text = rest.join('');
      rest = [next];
      if (text) line(text);
    }
  };
}

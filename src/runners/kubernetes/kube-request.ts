import type { Dispatcher } from 'undici';

/** The API server did not answer in time. */
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

interface AnswerOptions {
  /** Time limit of the whole answer; of a streamed one only until its headers. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly started: (status: number) => void;
  /** Receives the text of a streamed answer, unless it is a refusal; what it throws ends the request. */
  readonly piece?: ((text: string) => void) | undefined;
}

/** Sends one request and reads its answer. The time limit holds even while no connection is free. */
export async function sendKubeRequest(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, signal, started, piece }: AnswerOptions,
): Promise<KubeAnswer> {
  signal?.throwIfAborted();
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(new NoAnswerError()), timeoutMs);
  const ended = signal ? AbortSignal.any([silence.signal, signal]) : silence.signal;
  const read = async (): Promise<KubeAnswer> => {
    const { statusCode: status, headers, body } = await dispatcher.request({ ...request, signal: ended });
    started(status);
    if (!piece || status >= 300) return { status, headers, text: await body.text() };
    clearTimeout(timer);
    body.setEncoding('utf8');
    for await (const text of body) piece(text as string);
    return { status, headers, text: '' };
  };
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(ended.reason);
  ended.addEventListener('abort', abort);
  try {
    // While no connection is free undici does not hear the signal.
    return await Promise.race([read(), aborted.promise]);
  } finally {
    clearTimeout(timer);
    ended.removeEventListener('abort', abort);
  }
}

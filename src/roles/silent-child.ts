import { codeOf } from '../base/errors.ts';
import { sendRequest } from '../base/http-client.ts';
import { startPeriodicTask } from '../base/periodic-task.ts';
import type { ServerAddress } from '../base/server-address.ts';

/** A child hangs when it lets so many questions in a row go without an answer, each for so long. */
export interface SilencePatience {
  readonly askMs: number;
  readonly maxUnanswered: number;
}

/** Asks at an interval and calls `onHang` once the last questions, as many as may be, had no answer. */
export function watchAnswers(
  isUnanswered: (askMs: number) => Promise<boolean>,
  { askMs, maxUnanswered }: SilencePatience,
  onHang: () => void,
) {
  let unanswered = 0;
  return startPeriodicTask(async () => {
    unanswered = (await isUnanswered(askMs)) ? unanswered + 1 : 0;
    if (unanswered === maxUnanswered) onHang();
  }, askMs);
}

/**
 * Returns true for a server that takes a connection, or lets it wait, and answers nothing; one that does not listen yet refuses it.
 * EAGAIN means that its socket has a full queue of callers, none of which it has taken.
 */
export async function staysSilent(server: ServerAddress, askMs: number): Promise<boolean> {
  const signal = AbortSignal.timeout(askMs);
  const asked = {
    to: { server, path: '/healthz' },
    method: 'GET',
    signal,
    maxAnswerBytes: 0,
    ignoresBody: true,
  } as const;
  return sendRequest(asked).then(
    () => false,
    (error) => signal.aborted || codeOf(error) === 'EAGAIN',
  );
}

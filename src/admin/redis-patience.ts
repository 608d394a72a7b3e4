import type { Terminal } from '../base/terminal.ts';
import type { Patience } from '../store/redis/call-sender.ts';

const patienceMs = 30_000;

/** A command has nobody who waits for an answer within 2 s: it waits out a busy disk, and says so once. */
export function patienceOf({ err }: Pick<Terminal, 'err'>): Patience {
  let isTold = false;
  const onSlow = () => {
    if (!isTold)
      err(`Redis does not answer yet, perhaps because its disk is busy: waiting for up to ${patienceMs / 1000} s\n`);
    isTold = true;
  };
  return { timeoutMs: patienceMs, onSlow };
}

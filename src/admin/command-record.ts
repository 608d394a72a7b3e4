import { hostname, userInfo } from 'node:os';
import type { Config } from '../base/config.ts';
import { type Log, makeLog } from '../base/log.ts';
import type { Terminal } from '../base/terminal.ts';
import type { Actor } from '../model/audit.ts';
import type { Patience } from '../store/redis/call-sender.ts';
import type { RecordStore } from '../store/script.ts';

const patienceMs = 30_000;

/** Opens the record for a command and closes it afterwards; changes are noted with the operator as their author. */
export async function withRecord<T>(
  config: Config,
  terminal: Terminal,
  work: (store: RecordStore) => Promise<T>,
  whileStopped = false,
): Promise<T> {
  // Loaded only here, so that help does not load Redis.
  const { openStopped, openStore } = await import('../store/open-store.ts');
  const open = whileStopped ? openStopped : openStore;
  const { store, close } = await open(config, commandLog(config, terminal), { patience: patienceOf(terminal) });
  try {
    return await work({ ...store, actor: operatorOf(terminal.env) });
  } finally {
    await close();
  }
}

/** Logs of the connection would bury the answer of a command, and an error is reported at its end anyway. */
export function commandLog({ logLevel }: Pick<Config, 'logLevel'>, { err: write }: Terminal): Log {
  return makeLog({ level: logLevel === 'debug' ? 'debug' : 'error', write, now: Date.now });
}

/** A command has nobody who waits for an answer within 2 s: it waits out a busy disk, and says so once. */
export function patienceOf({ err }: Terminal): Patience {
  let isTold = false;
  const onSlow = () => {
    if (!isTold)
      err(`Redis does not answer yet, perhaps because its disk is busy: waiting for up to ${patienceMs / 1000} s\n`);
    isTold = true;
  };
  return { timeoutMs: patienceMs, onSlow };
}

/** Returns the user who runs a command, as the audit log names them: behind sudo, who asked for it. */
function operatorOf(env: Terminal['env']): Actor {
  return { via: 'command', who: env.SUDO_USER || userName(), from: hostname() };
}

/** A pod may run under an id that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}

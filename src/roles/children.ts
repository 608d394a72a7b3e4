import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { endChild, keepRunning } from '../base/child-process.ts';
import type { Log } from '../base/log.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { type SilencePatience, staysSilent, watchAnswers } from './silent-child.ts';

/** The command line of this program; the name of a role follows. */
export const ownCommand: readonly [string, string] = [process.execPath, join(import.meta.dirname, '..', 'main.ts')];

const restart = { firstMs: 200, maxMs: 5_000, steadyMs: 10_000 };
const graceMs = 4_000;

/** Settings that children of `trawl up` inherit: no secret, and no port of this process. */
const passedSettings = [
  'TRAWL_SANDBOX',
  'TRAWL_YTDLP_PLUGINS',
  'TRAWL_LOG_LEVEL',
  'TRAWL_LOG_FORMAT',
  'TRAWL_INSPECT_SECONDS',
  'TRAWL_JOB_SECONDS',
  'TRAWL_MAX_FILE_BYTES',
  'TRAWL_WEBHOOK_SECONDS',
  'TRAWL_EGRESS_PORTS',
  'TRAWL_EGRESS_ALLOW',
  'TRAWL_EGRESS_DENY',
  'TRAWL_DNS_SERVERS',
] as const;
const passedVariables = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'NODE_COMPILE_CACHE', 'XDG_CACHE_HOME', 'NO_COLOR'] as const;

export function childEnv(env: Readonly<Record<string, string | undefined>>, home: string): Record<string, string> {
  const kept = [...passedSettings, ...passedVariables].flatMap((name) =>
    env[name] === undefined ? [] : [[name, env[name]] as const],
  );
  return { ...Object.fromEntries(kept), TRAWL_DATA: home, TRAWL_HOST: '127.0.0.1', TRAWL_PROBE_PORT: '0' };
}

interface KeptChild {
  readonly role: string;
  readonly args?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly log: Log;
  /** Where the child answers HTTP, with any status: silence there means that it hangs. */
  readonly answersAt: ServerAddress;
  /** Called at each start. */
  readonly onStart?: (pid: number | undefined) => void;
  readonly patience?: SilencePatience;
}

/** A minute of silence: a child that waits for a processor of a busy machine answers within seconds. */
const minute: SilencePatience = { askMs: 10_000, maxUnanswered: 6 };

/**
 * Runs a role of this program as a child and restarts it with back-off when it ends or hangs (D93). Its standard input is its lifeline.
 * Returns how to end it for good.
 */
export function keepChild(kept: KeptChild): () => Promise<void> {
  const { role, args = [], env, log, answersAt, onStart = () => {}, patience = minute } = kept;
  const [program, ...words] = ownCommand;
  const stopping = new AbortController();
  let child: ChildProcess | null = null;
  let ended: Promise<object> = Promise.resolve({});

  const start = () => {
    const stdio = ['pipe', 'ignore', 'inherit'] as const;
    const started = spawn(program, [...words, role, '--lifeline', ...args], { stdio: [...stdio], detached: true, env });
    child = started;
    onStart(started.pid);
    started.stdin?.on('error', () => {
      // The child has ended; the event of its end follows.
    });
    let hangs = false;
    const watch = watchAnswers(
      (askMs) => staysSilent(answersAt, askMs),
      patience,
      () => {
        hangs = true;
        // A process that is stopped takes no other signal.
        started.kill('SIGKILL');
      },
    );
    ended = new Promise<object>((resolve) => {
      started.once('error', (error) => resolve({ error }));
      started.once('exit', (code, signal) => resolve({ code, signal, ...(hangs && { hung: true }) }));
    }).finally(() => {
      child = null;
      void watch.close();
    });
    return { ended };
  };
  const onEnd = (end: object, delayMs: number) =>
    log.warn('a child process ended: it is started again', { child: role, ...end, again_ms: delayMs });
  const running = keepRunning({ start, signal: stopping.signal, onEnd, ...restart });
  return async () => {
    stopping.abort();
    if (child) await endChild(child, ended, graceMs);
    await running;
  };
}

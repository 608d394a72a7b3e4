import type { ParseArgsOptionsConfig } from 'node:util';
import { parseOptions, UsageError } from '../base/command-line.ts';
import { type ConfigWith, type RoleNeeds, readConfig } from '../base/config.ts';
import { sentenceOf } from '../base/error-sentence.ts';
import { codeOf, Refusal } from '../base/errors.ts';
import { entryWriter, type Log, makeLog } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { followSecretFiles } from '../base/secret-files.ts';
import type { SettingName } from '../base/settings/settings.ts';
import { makeShutdown, type Shutdown } from '../base/shutdown.ts';
import type { Terminal } from '../base/terminal.ts';
import { version } from '../base/version.ts';
import { sentenceForOperator } from '../store/redis/explain-failure.ts';

export interface RoleTools<N extends SettingName = never> {
  readonly config: ConfigWith<N>;
  readonly log: Log;
  readonly stop: Shutdown;
  readonly terminal: Terminal;
  readonly options: Readonly<Record<string, unknown>>;
  /** True once the lifeline has ended: the parent is gone, so nothing needs to be drained. */
  readonly isOrphaned: () => boolean;
}

export interface RunningRole<N extends SettingName = never> extends RoleTools<N> {
  readonly metrics: Metrics;
  /** Fires when the role is told to end, also while it still starts: a start that waits for another part gives up. */
  readonly ending: AbortSignal;
}

interface RoleTexts<N extends SettingName> {
  readonly name: string;
  readonly help: string;
  /** Options of the command line besides `--help`; with `--lifeline` the role ends with its standard input, and not on Ctrl-C. */
  readonly options?: ParseArgsOptionsConfig;
  readonly needs?: RoleNeeds<N>;
  /** `stderr` for roles that run as children: their parents close the standard output of a child. */
  readonly logsTo?: 'stderr';
}

/** `start`: the role runs until SIGTERM. `run`: the role ends by itself with an exit code. Both refuse with a sentence. */
type Role<N extends SettingName> = RoleTexts<N> &
  (
    | { readonly start: (running: RunningRole<N>) => Promise<void> }
    | { readonly run: (tools: RoleTools<N>) => Promise<number> }
  );

/** Makes the command that runs a role to its end and returns the exit code. */
export function makeRole<const N extends SettingName = never>(role: Role<N>) {
  return (args: readonly string[], terminal: Terminal) => runRole(role, args, terminal);
}

/** The only place that reads options and settings, makes logs and waits for signals. */
async function runRole<N extends SettingName>(
  role: Role<N>,
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const stop = makeShutdown();
  try {
    const options: RoleTools['options'] = parseOptions(args, {
      ...role.options,
      help: { type: 'boolean', short: 'h' },
    });
    if (options.help) {
      terminal.out(role.help);
      return 0;
    }
    const first = readConfig(terminal.env, role.needs);
    const write = role.logsTo === 'stderr' ? terminal.err : (line: string) => void process.stdout.write(line);
    const screen = role.logsTo === 'stderr' ? process.stderr : process.stdout;
    const line = entryWriter(first.logFormat, screen, !terminal.env.NO_COLOR);
    const log = makeLog({ level: first.logLevel, write, now: Date.now, line }).with({ role: role.name });
    if ('start' in role) for (const stream of [process.stdout, process.stderr]) stream.on('error', outliveFullDisk);
    let isOrphaned = false;
    const tools = { config: first, log, stop, terminal, options, isOrphaned: () => isOrphaned };
    if ('run' in role) return await role.run(tools);
    const { config, close } = followSecretFiles(first, { env: terminal.env, log });
    stop.add('files of secrets', close);
    const ending = new AbortController();
    const end = waitForEnd(options.lifeline === true).finally(() => ending.abort());
    // Loaded here only: a worker has no metrics, and each would pay 60 ms of processor time for them.
    const metrics = (await import('../base/metrics.ts')).makeMetrics();
    metrics.build_info.set({ version, role: role.name }, 1);
    await role.start({ ...tools, config, metrics, ending: ending.signal }).catch((error) => {
      if (!ending.signal.aborted) throw error;
    });
    isOrphaned = (await end) === 'lifeline';
    log.info('the role stops');
    await stop.run();
    return 0;
  } catch (error) {
    if (error instanceof UsageError) {
      terminal.err(`${error.message}\n\n${role.help}`);
      return 2;
    }
    terminal.err(`${error instanceof Refusal ? sentenceForOperator(error) : sentenceOf(error)}\n`);
    // Parts that were opened before are released; their errors follow the cause.
    await stop.run().catch((late: Error) => terminal.err(`${late.message}\n`));
    return 1;
  } finally {
    if (args.includes('--lifeline')) process.stdin.destroy();
  }
}

/** A log on a full disk loses lines. Any other error ends the role, as one of a reader that has left does. */
function outliveFullDisk(error: Error): void {
  if (!['ENOSPC', 'EDQUOT'].includes(codeOf(error))) process.exit(codeOf(error) === 'EPIPE' ? undefined : 1);
}

/** Waits for SIGTERM, for Ctrl-C, or for the end of the lifeline, whose holder decides about Ctrl-C: a terminal sends it to both. */
function waitForEnd(hasLifeline: boolean): Promise<'signal' | 'lifeline'> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve('signal'));
    if (!hasLifeline) {
      process.once('SIGINT', () => resolve('signal'));
      return;
    }
    process.on('SIGINT', () => {});
    for (const event of ['end', 'close', 'error']) process.stdin.once(event, () => resolve('lifeline'));
    process.stdin.resume();
  });
}

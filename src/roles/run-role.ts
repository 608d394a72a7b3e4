import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Terminal } from '../admin/terminal.ts';
import { type ConfigWith, type RoleNeeds, readConfig, type SettingName } from '../base/config.ts';
import { sentenceOf } from '../base/error-sentence.ts';
import { type Log, makeLog } from '../base/log.ts';
import { type Metrics, makeMetrics } from '../base/metrics.ts';
import { makeShutdown, type Shutdown } from '../base/shutdown.ts';

/** What a role has from its start to its end. */
export interface RunningRole<N extends SettingName = never> {
  readonly config: ConfigWith<N>;
  readonly log: Log;
  readonly metrics: Metrics;
  /** What is opened is released at the end. */
  readonly stop: Shutdown;
  readonly terminal: Terminal;
}

export interface Role<N extends SettingName> {
  readonly help: string;
  readonly needs?: RoleNeeds<N>;
  /** Begins its work; it refuses with a sentence. */
  readonly start: (running: RunningRole<N>) => Promise<void>;
}

/** Runs a role until SIGTERM or Ctrl-C; gives the exit code. */
export async function runRole<const N extends SettingName = never>(
  { help, needs, start }: Role<N>,
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  try {
    const { values } = parseArgs({ args: [...args], options: { help: { type: 'boolean', short: 'h' } } });
    if (values.help) {
      terminal.out(help);
      return 0;
    }
  } catch (error) {
    terminal.err(`${error instanceof Error ? error.message : error}\n\n${help}`);
    return 2;
  }
  const stop = makeShutdown();
  const ended = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
  try {
    const config = readConfig(terminal.env, (path) => readFileSync(path, 'utf8'), needs);
    const log = makeLog({ level: config.logLevel, write: (line) => process.stdout.write(line), now: Date.now });
    await start({ config, log, metrics: makeMetrics(), stop, terminal });
    await ended;
    log.info('stopping');
    await stop.run();
    return 0;
  } catch (error) {
    terminal.err(`${sentenceOf(error)}\n`);
    // What was opened before is released; what goes wrong then is told after the cause.
    await stop.run().catch((late: Error) => terminal.err(`${late.message}\n`));
    return 1;
  }
}

import { readFileSync } from 'node:fs';
import { openArchive } from '../archive/open-archive.ts';
import { readConfig } from '../base/config.ts';
import { makeLog } from '../base/log.ts';
import { type AdminCommand, type CommandResult, UsageError } from './command.ts';
import { usageOf } from './command-help.ts';
import { commands } from './commands.ts';
import { findSeal } from './find-seal.ts';
import { type CommandLine, parseCommandLine, wantsJson } from './parse-command-line.ts';
import { reportError, showProgress, type Terminal } from './terminal.ts';

/** Runs one command of the operator and returns the exit code: 0 done, 1 refused or problems found, 2 wrong usage. */
export async function runAdmin(args: readonly string[], terminal: Terminal): Promise<number> {
  const json = wantsJson(args);
  try {
    const line = parseCommandLine(args, commands);
    if (line.help !== undefined) {
      terminal.out(line.help);
      return 0;
    }
    const { value, text, failed } = await carryOut(line, terminal);
    terminal.out(json ? `${JSON.stringify(value)}\n` : text);
    return failed ? 1 : 0;
  } catch (error) {
    return reportError(error, json, terminal);
  }
}

async function carryOut(
  { command, given }: Exclude<CommandLine, { help: string }>,
  terminal: Terminal,
): Promise<CommandResult> {
  const config = readConfig(terminal.env, (path) => readFileSync(path, 'utf8'));
  // Logs of the connection would bury the answer, and an error is reported at the end anyway.
  const level = config.logLevel === 'debug' ? 'debug' : 'error';
  const log = makeLog({ level, write: terminal.err, now: Date.now });
  const { openStore } = await import('../store/open-store.ts');
  const { store, close } = await openStore(config, log);
  const progress = showProgress(terminal);
  try {
    const seal = () => findSeal(config);
    const readArchivedPart = openArchive(config, seal, store.clock.now);
    return await command.run(given as never, { store, config, seal, readArchivedPart, progress: progress.show });
  } catch (error) {
    throw withUsage(error, command);
  } finally {
    progress.clear();
    await close();
  }
}

function withUsage(error: unknown, command: AdminCommand): unknown {
  return error instanceof UsageError ? new UsageError(error.message, usageOf(command)) : error;
}

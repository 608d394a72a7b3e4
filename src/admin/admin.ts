import { readJsonLines } from '../archive/json-lines.ts';
import { readConfig } from '../base/config.ts';
import type { Seal } from '../base/seal.ts';
import type { Terminal } from '../base/terminal.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { openObjects } from '../objects/open-objects.ts';
import type { RecordStore } from '../store/script.ts';
import type { CommandResult } from './command.ts';
import { usageOf } from './command-help.ts';
import { reportError, showProgress, withUsage } from './command-io.ts';
import { withRecord } from './command-record.ts';
import { commands } from './commands.ts';
import { findSeal } from './find-seal.ts';
import { type CommandLine, parseCommandLine, wantsJson } from './parse-command-line.ts';
import { findServedUrls } from './served-urls.ts';

/** Commands permit no upload, so they need no secret for the object store. */
const noPermits: Pick<Seal, 'sign' | 'verify'> = {
  sign: () => {
    throw new Error('a command permits no upload');
  },
  verify: () => false,
};

/** Runs one command of the operator and returns the exit code: 0 done, 1 refused or problems found, 2 wrong usage. */
export async function runCommand(args: readonly string[], terminal: Terminal): Promise<number> {
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
  const config = readConfig(terminal.env);
  const run = async (store: RecordStore) => {
    const progress = showProgress(terminal);
    try {
      let opened: Promise<ObjectStore> | undefined;
      const objects = () => {
        opened ??= openObjects(config, noPermits, store.clock.now);
        return opened;
      };
      const seal = () => findSeal(config);
      const readArchivedPart = async (object: string) => readJsonLines(await objects(), object);
      const linking = { ...config, ...(await findServedUrls(config, terminal.env)) };
      const tools = { store, config: linking, seal, objects, readArchivedPart, progress: progress.show };
      return await command.run(given as never, tools);
    } catch (error) {
      throw withUsage(error, usageOf(command));
    } finally {
      progress.clear();
    }
  };
  return withRecord(config, terminal, run, command.whileStopped);
}

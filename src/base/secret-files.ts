import { readFile } from 'node:fs/promises';
import { type Config, fieldOf, readSettings } from './config.ts';
import { messageOf } from './errors.ts';
import type { Log } from './log.ts';
import { startPeriodicTask } from './periodic-task.ts';
import { type SettingName, settings } from './settings/settings.ts';

interface FollowOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly rereadMs?: number;
}

/** Interval at which files of secrets are read again, unless a test has its own. */
export const secretRereadMs = 2_000;

/**
 * Reads the files of secrets again while a role runs; a value that is not allowed leaves the one before. Returns the same settings; those that
 * come from such files have the value that was read last, so they are read where they are used.
 */
export function followSecretFiles<C extends Config>(config: C, { env, log, rereadMs = secretRereadMs }: FollowOptions) {
  const names = settings.filter(({ followed, name }) => followed && env[`${name}_FILE`]).map(({ name }) => name);
  if (names.length === 0) return { config, close: async () => {} };
  const present = new Map<string, unknown>(
    Object.entries(config).filter(([field]) => names.some((name) => fieldOf(name) === field)),
  );
  const live = Object.defineProperties(
    { ...config },
    Object.fromEntries(
      [...present.keys()].map((field) => [field, { get: () => present.get(field), enumerable: true }]),
    ),
  );
  const warned = new Map<SettingName, string>();
  const readOne = async (name: SettingName) => {
    try {
      const [field, value] = [fieldOf(name), await readAgain(name, env)];
      warned.delete(name);
      if (JSON.stringify(value) === JSON.stringify(present.get(field))) return;
      present.set(field, value);
      log.info('a secret has a new value', { setting: name });
    } catch (error) {
      // A file that is being written is whole at the next look.
      const why = messageOf(error);
      if (why !== warned.get(name)) log.warn('a secret cannot be read again: its value before stays', { error });
      warned.set(name, why);
    }
  };
  const readAll = async () => void (await Promise.all(names.map(readOne)));
  const { close } = startPeriodicTask(readAll, rereadMs);
  return { config: Object.freeze(live) as C, close };
}

/** Reads the file of a setting without blocking the event loop, then the setting from its text. */
async function readAgain(name: SettingName, env: FollowOptions['env']): Promise<unknown> {
  const text = await readFile(env[`${name}_FILE`]!, 'utf8');
  const values: Readonly<Record<string, unknown>> = readSettings(env, [name], () => text);
  return values[fieldOf(name)];
}

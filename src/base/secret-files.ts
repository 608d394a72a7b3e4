import { readFile } from 'node:fs/promises';
import { type Config, fieldOf, readSettings, type SettingName } from './config.ts';
import type { Log } from './log.ts';
import type { Setting } from './settings/kinds.ts';
import { settings } from './settings/settings.ts';

interface FollowOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly rereadMs?: number;
}

interface FollowedConfig<C extends Config> {
  /** The same settings; those that come from such files have the value that was read last, so they are read where they are used. */
  readonly config: C;
  readonly close: () => void;
}

const usualRereadMs = 2_000;

/** Reads the files of secrets again while a role runs; a value that is not allowed leaves the one before. */
export function followSecretFiles<C extends Config>(
  config: C,
  { env, log, rereadMs = usualRereadMs }: FollowOptions,
): FollowedConfig<C> {
  const names = settings
    .filter(({ followed, name }: Setting) => followed && env[`${name}_FILE`])
    .map(({ name }) => name);
  if (names.length === 0) return { config, close: () => {} };
  const present = new Map<string, unknown>(
    Object.entries(config).filter(([field]) => names.some((name) => fieldOf(name) === field)),
  );
  const live = Object.defineProperties(
    { ...config },
    Object.fromEntries(
      [...present.keys()].map((field) => [field, { get: () => present.get(field), enumerable: true }]),
    ),
  );
  let timer: NodeJS.Timeout | undefined;
  let warned = '';
  const look = async () => {
    try {
      for (const [name, value] of await readAgain(names, env)) {
        const field = fieldOf(name);
        if (JSON.stringify(value) === JSON.stringify(present.get(field))) continue;
        present.set(field, value);
        log.info('a secret has a new value', { setting: name });
      }
      warned = '';
    } catch (error) {
      // A file that is being written is whole at the next look.
      const why = error instanceof Error ? error.message : String(error);
      if (why !== warned) log.warn('a secret cannot be read again: its value before stays', { error });
      warned = why;
    }
    if (timer !== undefined) timer = setTimeout(look, rereadMs).unref();
  };
  timer = setTimeout(look, rereadMs).unref();
  const close = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  return { config: Object.freeze(live) as C, close };
}

/** Reads the files without blocking the event loop, then the settings from their texts. */
async function readAgain(names: readonly SettingName[], env: FollowOptions['env']): Promise<[SettingName, unknown][]> {
  const paths = names.map((name) => env[`${name}_FILE`]!);
  const texts = new Map(await Promise.all(paths.map(async (path) => [path, await readFile(path, 'utf8')] as const)));
  const values: Readonly<Record<string, unknown>> = readSettings(env, (path) => texts.get(path)!, names);
  return names.map((name) => [name, values[fieldOf(name)]]);
}

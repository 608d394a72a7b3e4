import { join } from 'node:path';

const main = join(import.meta.dirname, '..', 'main.ts');

/** The words that start this program again in another role. */
export const ownCommand: readonly [string, string] = [process.execPath, main];

/** What parts on one machine are told of the settings: nothing that is secret, and no port of this process. */
const passedSettings = [
  'TRAWL_SANDBOX',
  'TRAWL_YTDLP_PLUGINS',
  'TRAWL_LOG_LEVEL',
  'TRAWL_INSPECT_SECONDS',
  'TRAWL_JOB_SECONDS',
  'TRAWL_MAX_FILE_BYTES',
  'TRAWL_WEBHOOK_SECONDS',
  'TRAWL_EGRESS_PORTS',
  'TRAWL_EGRESS_ALLOW',
  'TRAWL_EGRESS_DENY',
  'TRAWL_DNS_SERVERS',
] as const;
const passedVariables = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'NODE_COMPILE_CACHE', 'XDG_CACHE_HOME'] as const;

/** The environment of the parts that run beside `trawl up`. */
export function childEnv(env: Readonly<Record<string, string | undefined>>, home: string): Record<string, string> {
  const kept = [...passedSettings, ...passedVariables].flatMap((name) =>
    env[name] === undefined ? [] : [[name, env[name]] as const],
  );
  return { ...Object.fromEntries(kept), TRAWL_DATA: home, TRAWL_HOST: '127.0.0.1', TRAWL_PROBE_PORT: '0' };
}

import { readFileSync } from 'node:fs';
import { type Config, ConfigError, readConfig } from '../base/config.ts';
import { makeLog } from '../base/log.ts';
import { checkClock, checkMachine, checkPrograms } from './check-machine.ts';
import { UsageError } from './command.ts';
import type { Finding } from './doctor-finding.ts';
import { reportError, type Terminal } from './terminal.ts';
import { tableText } from './text-table.ts';

const usage = 'trawl doctor [--json]';
const help = `Usage: ${usage}

Judges the settings, the programs of this machine, its clock and disk, the record if one is there, and the bucket of
finished files if one is named. Changes nothing: the small file that it writes to the bucket is removed at once.
The exit code is 1 when something is a problem.

  --json  Answer with one JSON value.
  --help  Show this text.
`;

/** Settings of a machine whose own cannot be read. */
const usual = { redisUrl: null, runner: 'process', sandbox: 'auto' } as const;

/** Checks everything that trawl needs; returns 1 when something is a problem. */
export async function runDoctor(args: readonly string[], terminal: Terminal): Promise<number> {
  const json = args.includes('--json');
  try {
    const unknown = args.find((arg) => !['--json', '--help', '-h'].includes(arg));
    if (unknown !== undefined) throw new UsageError(`There is no option ${unknown} here`, usage);
    if (args.includes('--help') || args.includes('-h')) {
      terminal.out(help);
      return 0;
    }
    const findings = await checkAll(terminal);
    const ok = findings.every(({ level }) => level !== 'problem');
    terminal.out(json ? `${JSON.stringify({ ok, findings })}\n` : textOf(findings));
    return ok ? 0 : 1;
  } catch (error) {
    return reportError(error, json, terminal);
  }
}

async function checkAll({ env, err }: Terminal): Promise<Finding[]> {
  const { config, findings } = checkSettings(env);
  // Without settings, Redis and the data folder cannot be found.
  if (config === null) return [...findings, ...(await checkPrograms(usual)), checkClock(Date.now())];
  // Loaded only here, so that its help stays fast.
  const { checkRecord } = await import('./check-record.ts');
  const log = makeLog({ level: config.logLevel === 'debug' ? 'debug' : 'error', write: err, now: Date.now });
  const bucket = config.objects === 's3' ? [await checkBucketOf(config)] : [];
  return [...findings, ...(await checkMachine(config)), ...(await checkRecord(config, log)), ...bucket];
}

async function checkBucketOf(config: Config): Promise<Finding> {
  // Loaded only where it is used, because it is large.
  const { checkBucket } = await import('./check-bucket.ts');
  return checkBucket(config);
}

function checkSettings(env: Terminal['env']): { config: Config | null; findings: Finding[] } {
  try {
    const config = readConfig(env, (path) => readFileSync(path, 'utf8'));
    return {
      config,
      findings: [{ level: 'ok', about: 'settings', text: 'Every setting has a value that is allowed.' }],
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return {
      config: null,
      findings: error.problems.map((text) => ({ level: 'problem', about: 'settings', text })),
    };
  }
}

function textOf(findings: readonly Finding[]): string {
  const columns = {
    verdict: ({ level }: Finding) => level,
    about: ({ about }: Finding) => about,
    finding: ({ text }: Finding) => text,
  };
  return tableText(findings, columns, 'Nothing was judged.');
}

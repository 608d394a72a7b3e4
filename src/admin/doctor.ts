import { type Config, ConfigError, readConfig } from '../base/config.ts';
import { nullWhen } from '../base/errors.ts';
import type { Terminal } from '../base/terminal.ts';
import { checkCookies } from './check-cookies.ts';
import { checkLimits, checkMachine, checkPrograms } from './check-machine.ts';
import { checkPartners, checkTraces } from './check-partners.ts';
import { checkBilling, checkDashboard, checkTls } from './check-settings.ts';
import { makeProgram } from './command-io.ts';
import { commandLog, patienceOf } from './command-record.ts';
import { type Finding, fine } from './doctor-finding.ts';
import { findSeal } from './find-seal.ts';
import { checkClock, checkNode } from './machine-findings.ts';
import { tableText } from './text-table.ts';

const usage = 'trawl doctor [--policies] [--json]';
const help = `Usage: ${usage}

Judges the settings, the programs of this machine, its clock and disk, the certificates of TLS between the parts,
the record if one is there and each server of its Redis, and the bucket of finished files, the cookie files, the mail server
and the key of Stripe if one is named. Changes nothing: the small file that it writes to the bucket and the empty folder that it
makes beside the data are removed at once, and it sends no mail. The exit code is 1 when something is a problem.

With TRAWL_RUNNER=kubernetes it judges the cluster instead of the machine: rights of the controller, what the namespace of
the workers lets in, images, names, egress, inspector, and whether network policies are enforced. The chart's value
doctor.enabled makes a Job of it.

  --policies  Judge only whether the cluster enforces the network policies of workers: a pod that the controller's rights make, and
              that differs from a worker in its command alone, tries what it reaches, and is removed.
  --json      Answer with one JSON value.
  --help      Show this text.
`;

/** Settings by which a machine is judged whose own cannot be read. */
const assumedSettings = { redisUrl: null, runner: 'process', sandbox: 'auto' } as const;

const options = { policies: { type: 'boolean' }, json: { type: 'boolean' } } as const;

/** Checks everything that trawl needs; returns 1 when something is a problem. */
export const runCommand = makeProgram({ usage, help, options }, async ({ policies, json }, terminal) => {
  const findings = await (policies ? checkPoliciesAlone(terminal) : checkAll(terminal));
  const ok = findings.every(({ level }) => level !== 'problem');
  const rows = findings.map(({ level, about, text }) => ({ verdict: level, about, finding: text }));
  terminal.out(json ? `${JSON.stringify({ ok, findings })}\n` : tableText(rows, 'Nothing was judged.'));
  return ok ? 0 : 1;
});

async function checkAll(terminal: Terminal): Promise<Finding[]> {
  const { env } = terminal;
  const { config, findings } = checkSettings(env);
  // Without settings, Redis and the data folder cannot be found.
  if (config === null) return [...findings, ...(await checkPrograms(assumedSettings)), checkClock(Date.now())];
  // The store and the S3 client are loaded only here, so that help stays fast.
  const { checkRecord } = await import('./check-record.ts');
  const log = commandLog(config, terminal);
  const surroundings =
    config.runner === 'kubernetes'
      ? [checkNode(process.versions.node), checkClock(Date.now()), ...(await checkSurroundings(config, env))]
      : [...(await checkMachine(config)), ...(await checkLimits(config))];
  const partners = await checkPartners(config);
  const files = [...(await checkCookies(config)), checkDashboard(config), ...checkBilling(config)];
  const machine = [...surroundings, ...files, ...partners, ...(await checkTraces(config))];
  const tls = checkTls(config, Date.now());
  const seal = await findSeal(config).catch(nullWhen('unavailable'));
  const record = await checkRecord(config, log, patienceOf(terminal), seal);
  const checked = [...findings, ...machine, ...tls, ...record];
  if (config.objects !== 's3') return checked;
  const { checkBucket } = await import('./check-bucket.ts');
  const isInCluster = config.runner === 'kubernetes';
  return [...checked, await checkBucket(config, { isInCluster, hasPolicies: isInCluster && hasPolicies(env) })];
}

async function checkPoliciesAlone({ env }: Terminal): Promise<Finding[]> {
  const { config, findings } = checkSettings(env);
  if (config === null) return findings;
  const { checkPolicies } = await import('./check-policies.ts');
  return [await checkPolicies(config, env)];
}

/** Where workers are Jobs, their programs are in their image: the cluster is judged in place of this machine. */
async function checkSurroundings(config: Config, env: Terminal['env']): Promise<Finding[]> {
  const { checkCluster } = await import('./check-cluster.ts');
  const { checkParts } = await import('./check-parts.ts');
  const node = env.NODE_NAME ? [fine('node', `This pod is on the node ${env.NODE_NAME}.`)] : [];
  return [...node, ...(await checkCluster(config, env)), ...(await checkParts(config, hasPolicies(env)))];
}

function hasPolicies({ NETWORK_POLICIES }: Terminal['env']): boolean {
  return NETWORK_POLICIES !== 'none';
}

function checkSettings(env: Terminal['env']): { config: Config | null; findings: Finding[] } {
  try {
    const config = readConfig(env);
    const text = 'Every setting has a value that is allowed.';
    return { config, findings: [{ level: 'ok', about: 'settings', text }] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const findings = error.problems.map((text) => ({ level: 'problem', about: 'settings', text }) as const);
    return { config: null, findings };
  }
}

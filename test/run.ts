import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Batch, runInLanes, type Tally } from './lanes.ts';
import { toolFolders } from './support/tools.ts';

/** The groups that are one command each; every other group is a folder of test/ with `*.test.ts` files. */
const commands: Record<string, readonly string[]> = {
  types: ['tsc', '-p', '.', '--incremental', '--tsBuildInfoFile', '.cache/types.tsbuildinfo'],
  lint: ['biome', 'check', '--error-on-warnings', '.'],
};
/** The Python of the project's own, which has yt-dlp. */
const python = '.cache/python/bin/python3';
const media = [python, 'ffmpeg', 'ffprobe'];
const node = ['kubelet', 'containerd', 'runc', '/usr/lib/cni/bridge', 'iptables', 'nft', '/bin/busybox', 'root'];
/** The commands that a group is skipped without; one with a slash is a file, and `root` is who may do everything here. */
const needs: Record<string, readonly string[]> = {
  store: ['redis-server'],
  api: ['redis-server', ...media],
  controller: ['redis-server'],
  webhooks: ['redis-server'],
  archive: ['redis-server'],
  backup: ['redis-server'],
  billing: ['redis-server'],
  admin: ['redis-server'],
  media,
  worker: [...media, 'bwrap'],
  flow: ['redis-server', ...media, 'bwrap'],
  operate: ['redis-server', ...media, 'bwrap'],
  attack: ['redis-server', ...media, 'bwrap'],
  dashboard: ['redis-server'],
  client: ['redis-server', ...media, 'bwrap'],
  clients: ['redis-server', ...media, 'bwrap'],
  s3: ['versitygw', 'redis-server', ...media, 'bwrap'],
  cluster: ['kube-apiserver', 'redis-server'],
  chart: [
    'helm',
    'helm-tool',
    'helm-unittest',
    'kubeconform',
    'checkov',
    'oldest-kubernetes.json',
    'kube-apiserver',
    'redis-server',
  ],
  oldest: ['oldest-kube-apiserver', 'kube-apiserver', 'helm', 'oldest-kubernetes.json'],
  openapi: ['oasdiff'],
  stripe: ['stripe-mock'],
  browser: ['chromium', 'redis-server'],
  release: ['helm', 'actionlint'],
  watch: ['helm', 'promtool', 'prometheus', 'otel-collector', 'redis-server', ...media, 'bwrap'],
  images: ['buildah', 'mmdebstrap', 'runc', ...media, 'root'],
  node,
  e2e: [...node, 'versitygw', 'redis-server', 'ffmpeg', 'ffprobe', 'kube-network-policies'],
  checker: ['redis-server'],
  mutation: ['redis-server'],
  fuzz: ['redis-server'],
};
/** The build of a group; the group is skipped when it fails. */
const builds: Record<string, string> = { e2e: 'docker/build' };
/** Groups that mostly wait, each file or each group in a process of its own: they run beside the others; what takes longest begins. */
const waiting: Record<string, 'by file' | 'whole'> = {
  e2e: 'by file',
  cluster: 'by file',
  chart: 'by file',
  flow: 'by file',
  operate: 'by file',
  client: 'by file',
  clients: 'by file',
  browser: 'by file',
  attack: 'by file',
  s3: 'by file',
  images: 'whole',
  node: 'by file',
  runners: 'whole',
  release: 'by file',
  tooling: 'by file',
  watch: 'by file',
};
/** The first of the other groups: what fails soon, then what takes long. */
const firstGroups = ['types', 'lint', 'unit', 'repo', 'api', 'media', 'store', 'worker', 'admin'];
/** Groups of the long form: they run when ROUNDS is set, or when they are named. */
const longGroups = ['mutation', 'fuzz', 'oldest'];

const root = join(import.meta.dirname, '..');
process.chdir(root);
process.env.PATH = [join(root, 'node_modules', '.bin'), ...toolFolders(), process.env.PATH].join(':');

const all = listGroups();
const groups = readGroups(process.argv.slice(2));
const unknown = groups.filter((group) => !all.includes(group));
if (unknown.length > 0) refuse(`There is no group ${unknown.join(', ')}`);

const total = noTests();
const able = groups.filter((group) => {
  const missing = needs[group]?.filter((command) => !isInstalled(command)) ?? [];
  if (missing.length === 0) return true;
  console.log(`== ${group}: skipped, without ${missing.join(', ')}`);
  total.skipped++;
  return false;
});
const start = performance.now();
await runGroups(able);
if (total.passed + total.failed === 0) console.log('Nothing ran, which counts as a failure');
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;
// A reader who sees only the end of a long output still sees the failures.
for (const failure of total.failures) console.log(`!! ${failure}`);
console.log(`== ${able.join(', ')} in ${inSeconds(performance.now() - start)}`);
console.log(inWords(total));

/** Returns the groups that a command line names, or those that a whole run has. */
function readGroups(args: string[]): string[] {
  try {
    const { values } = parseArgs({ args, options: { groups: { type: 'string' } } });
    const isLong = process.env.ROUNDS !== undefined;
    return values.groups?.split(',') ?? all.filter((group) => isLong || !longGroups.includes(group));
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
  }
}

function refuse(why: string): never {
  console.error(`${why}; --groups NAME,… runs groups of ${all.join(', ')}`);
  process.exit(2);
}

/** Returns every group, in the order in which they begin. */
function listGroups(): string[] {
  const there = new Set([
    ...Object.keys(commands),
    ...globSync('test/*/**/*.test.ts').map((path) => path.split('/')[1]!),
  ]);
  return [...new Set([...firstGroups, ...[...there].sort()])].filter((name) => there.has(name));
}

function patternOf(group: string): string {
  return `test/${group}/**/*.test.ts`;
}

function isInstalled(command: string): boolean {
  if (command === 'root') return process.getuid?.() === 0;
  if (command.includes('/')) return existsSync(command);
  return process.env.PATH!.split(':').some((folder) => existsSync(join(folder, command)));
}

/** Runs groups in lanes, and tells of each when the last of its files is over; its time is that of its files. */
async function runGroups(names: readonly string[]): Promise<void> {
  const busy = names.filter((name) => !(name in waiting)).flatMap(batchesOf);
  const idle = Object.keys(waiting)
    .filter((name) => names.includes(name))
    .flatMap(batchesOf);
  const sums = new Map(names.map((group) => [group, { ...noTests(), milliseconds: 0 }]));
  const left = [...busy, ...idle].map(({ group }) => group);
  await runInLanes(busy, idle, ({ group, what }, tally, milliseconds) => {
    const sum = sums.get(group)!;
    add(sum, tally);
    sum.milliseconds += milliseconds;
    if (waiting[group] === 'by file') console.log(`-- ${what}: ${inWords(tally)} in ${inSeconds(milliseconds)}`);
    left.splice(left.indexOf(group), 1);
    if (!left.includes(group)) end(group, sum, sum.milliseconds);
  });
}

function batchesOf(group: string): Batch[] {
  const command = commands[group];
  if (command) return [{ group, what: command.join(' '), command }];
  const build = builds[group];
  const files = waiting[group] === 'by file' ? globSync(patternOf(group)).sort() : [patternOf(group)];
  return files.map((what) => ({ group, what, ...(build && { build }) }));
}

function end(group: string, tally: Tally, milliseconds: number): void {
  console.log(`== ${group}: ${inWords(tally)} in ${inSeconds(milliseconds)}`);
  add(total, tally);
}

function noTests(): Tally {
  return { passed: 0, failed: 0, skipped: 0, failures: [] };
}

function add(sum: Tally, { passed, failed, skipped, failures }: Tally): void {
  sum.failures.push(...failures);
  sum.passed += passed;
  sum.failed += failed;
  sum.skipped += skipped;
}

function inSeconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

function inWords({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

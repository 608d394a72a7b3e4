import { fork, spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { toolFolders } from './support/tools.ts';

interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

/** The groups that are one command each; every other group is a folder of test/ with `*.test.ts` files. */
const commands: Record<string, readonly string[]> = {
  types: ['tsc', '-p', '.'],
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
  admin: ['redis-server'],
  mutants: ['redis-server'],
  media,
  worker: [...media, 'bwrap'],
  flow: ['redis-server', ...media, 'bwrap'],
  s3: ['versitygw', 'redis-server', ...media, 'bwrap'],
  cluster: ['kube-apiserver', 'redis-server'],
  images: ['buildah', 'mmdebstrap', 'runc', ...media, 'root'],
  node,
  e2e: [...node, 'versitygw', 'redis-server', 'ffmpeg', 'ffprobe'],
};
/** What a group is built from first; it is skipped when that cannot be built here. */
const builds: Record<string, string> = { e2e: 'docker/build' };
/** Groups that mostly wait for a cluster: two of their files run at a time, each in a process of its own. */
const sideBySide = ['cluster', 'node'];
const firstFolders = [
  'unit',
  'repo',
  'store',
  'objects',
  's3',
  'egress',
  'media',
  'worker',
  'runners',
  'controller',
  'api',
  'flow',
];

const root = join(import.meta.dirname, '..');
process.chdir(root);
process.env.PATH = [join(root, 'node_modules', '.bin'), ...toolFolders(), process.env.PATH].join(':');

const { values } = parseArgs({ options: { groups: { type: 'string' } } });
const all = [...Object.keys(commands), ...testFolders()];
const groups = values.groups?.split(',') ?? all;
const unknown = groups.filter((group) => !all.includes(group));
if (unknown.length > 0) {
  console.error(`There is no group ${unknown.join(', ')}; there are ${all.join(', ')}`);
  process.exit(2);
}

const total: Tally = { passed: 0, failed: 0, skipped: 0 };
for (const group of groups) {
  const start = performance.now();
  console.log(`== ${group}`);
  const tally = await runGroup(group);
  console.log(`== ${group}: ${inWords(tally)} in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  add(total, tally);
}
if (total.passed + total.failed === 0) console.log('Nothing ran, which counts as a failure');
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;
console.log(inWords(total));

function testFolders(): string[] {
  const folders = new Set(globSync('test/*/**/*.test.ts').map((path) => path.split('/')[1]!));
  folders.delete('support');
  return [...new Set([...firstFolders, ...[...folders].sort()])].filter((name) => folders.has(name));
}

async function runGroup(group: string): Promise<Tally> {
  const missing = needs[group]?.filter((command) => !isInstalled(command)) ?? [];
  if (missing.length > 0) {
    console.log(`skipped: ${missing.join(', ')} missing`);
    return { passed: 0, failed: 0, skipped: 1 };
  }
  const build = builds[group];
  if (build !== undefined && spawnSync(build, { stdio: 'inherit' }).status !== 0) {
    console.log(`skipped: ${build} failed`);
    return { passed: 0, failed: 0, skipped: 1 };
  }
  const command = commands[group];
  if (command) return runCommand(command);
  const files = `test/${group}/**/*.test.ts`;
  return sideBySide.includes(group) ? runFiles(globSync(files).sort()) : runMocha(files, 'inherit');
}

function isInstalled(command: string): boolean {
  if (command === 'root') return process.getuid?.() === 0;
  if (command.includes('/')) return existsSync(command);
  return process.env.PATH!.split(':').some((folder) => existsSync(join(folder, command)));
}

function runCommand([name, ...rest]: readonly string[]): Tally {
  const passed = spawnSync(name!, rest, { stdio: 'inherit' }).status === 0;
  return { passed: Number(passed), failed: Number(!passed), skipped: 0 };
}

/** Runs files two at a time; what each says is shown when it is over, so that they do not mix. */
async function runFiles(files: string[]): Promise<Tally> {
  const sum: Tally = { passed: 0, failed: 0, skipped: 0 };
  const lane = async () => {
    for (let file = files.shift(); file !== undefined; file = files.shift()) add(sum, await runMocha(file, 'pipe'));
  };
  await Promise.all([lane(), lane()]);
  return sum;
}

function add(sum: Tally, { passed, failed, skipped }: Tally): void {
  sum.passed += passed;
  sum.failed += failed;
  sum.skipped += skipped;
}

/** Runs files in a process of their own. One that ends without its tally, or badly in spite of it, counts as a failure. */
function runMocha(files: string, output: 'inherit' | 'pipe'): Promise<Tally> {
  const reporter = process.stdout.isTTY ? 'spec' : 'dot';
  const mocha = fork('node_modules/mocha/bin/mocha.js', ['--reporter', reporter, files], {
    stdio: ['inherit', output, output, 'ipc'],
  });
  let said = '';
  for (const stream of [mocha.stdout, mocha.stderr]) stream?.setEncoding('utf8').on('data', (piece) => (said += piece));
  let tally: Tally | undefined;
  let limit: NodeJS.Timeout | undefined;
  let isStuck = false;
  mocha.on('message', (message) => {
    tally = message as Tally;
    // Mocha ends when nothing is open any more; a test that leaves a socket or a timer would hold it for ever.
    limit = setTimeout(() => {
      console.log('The tests leave something open, so their process does not end');
      isStuck = true;
      mocha.kill();
    }, 3000);
  });
  return new Promise((resolve) => {
    mocha.on('close', (code) => {
      clearTimeout(limit);
      process.stdout.write(said);
      if (!tally) console.log('The process ended before its tests did');
      const endedWell = code === 0 && !isStuck;
      resolve(tally ? { ...tally, failed: tally.failed || Number(!endedWell) } : { passed: 0, failed: 1, skipped: 0 });
    });
  });
}

function inWords({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

import { sentenceOf } from './base/error-sentence.ts';
import type { Terminal } from './base/terminal.ts';

/** Sentence about a command, and the load of only its parts, so that it starts fast. */
type Command = readonly [text: string, load: () => Promise<{ readonly runCommand: RunCommand }>];
type RunCommand = (args: readonly string[], terminal: Terminal) => Promise<number>;

const commands: Readonly<Record<string, Command>> = {
  up: ['Run trawl on this machine', () => import('./roles/run-up.ts')],
  api: ['Run the public API, beside others', () => import('./roles/run-api.ts')],
  dashboard: ['Run the dashboard apart from the public API, beside others', () => import('./roles/run-dashboard.ts')],
  controller: ['Bring jobs to their end in a cluster, beside others', () => import('./roles/run-controller.ts')],
  worker: ['Run one attempt of one job, told on standard input', () => import('./roles/run-worker.ts')],
  inspector: ['Tell what is known of media URLs', () => import('./roles/run-inspector.ts')],
  egress: ['Reach the addresses that callers name, and only public ones', () => import('./roles/run-egress.ts')],
  doctor: ['Judge this machine, the settings and the record', () => import('./admin/doctor.ts')],
  manifests: [
    'Print the Kubernetes objects that guard the namespace of the workers',
    () => import('./admin/manifests.ts'),
  ],
  uninstall: [
    'Release what workers hold in a cluster, before trawl is removed from it',
    () => import('./admin/uninstall.ts'),
  ],
  bootstrap: ['Create a first account with a key that is given', () => import('./admin/bootstrap.ts')],
  conform: ['Judge a deployment against the contract, from outside', () => import('./admin/conform.ts')],
  get: ['Ask a service for files and fetch them, as a caller', () => import('./client/get.ts')],
  login: ['Keep the address of a service and a key, for trawl get', () => import('./client/login.ts')],
  mcp: ['Serve the tools of the Model Context Protocol, as a caller', () => import('./client/mcp.ts')],
  admin: ['Plans, accounts, keys, money and logs', () => import('./admin/admin.ts')],
};

const overview = `Usage: trawl COMMAND …

${Object.entries(commands)
  .map(([name, [text]]) => `  ${name.padEnd(10)}  ${text}\n`)
  .join('')}
trawl COMMAND --help tells more, and trawl --version which release this is.
`;

/** Runs a command and returns the exit code. Options may precede the name of the command. */
async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const index = args.findIndex((arg) => !arg.startsWith('-'));
  const [, command] = Object.entries(commands).find(([name]) => name === args[index]) ?? [];
  if (command) return run(command, args.toSpliced(index, 1), terminal);
  if (index < 0 && args.some((arg) => arg === '--help' || arg === '-h')) {
    terminal.out(overview);
    return 0;
  }
  if (index < 0 && args.includes('--version')) {
    terminal.out(`trawl ${(await import('./base/version.ts')).version}\n`);
    return 0;
  }
  terminal.err(args.length === 0 ? overview : `There is no command ${args[Math.max(0, index)]}\n\n${overview}`);
  return 2;
}

async function run([, load]: Command, args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await (await load()).runCommand(args, terminal);
  } catch (error) {
    terminal.err(`${sentenceOf(error)}\n`);
    return 1;
  }
}

if (import.meta.main) {
  for (const stream of [process.stdout, process.stderr]) {
    // EPIPE is no failure: the reader may stop early, as `head` does. A command that has to end its work first listens itself.
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (stream.listenerCount('error') > 1) return;
      if (error.code === 'EPIPE') process.exit();
      if (stream === process.stdout) process.stderr.write(`Standard output cannot be written: ${error.message}\n`);
      process.exit(1);
    });
  }
  process.exitCode = await main(process.argv.slice(2), {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    isWatched: process.stderr.isTTY === true,
    env: process.env,
  });
}

import { sentenceOf } from './base/error-sentence.ts';
import type { Terminal } from './base/terminal.ts';

interface Command {
  readonly name: string;
  readonly text: string;
  /** Loads only the parts of this role, so that it starts fast. */
  readonly load: () => Promise<(args: readonly string[], terminal: Terminal) => Promise<number>>;
}

const roles: readonly Command[] = [
  { name: 'up', text: 'Run trawl on this machine', load: async () => (await import('./roles/run-up.ts')).runUp },
  {
    name: 'api',
    text: 'Run the public API, beside others',
    load: async () => (await import('./roles/run-api.ts')).runApi,
  },
  {
    name: 'dashboard',
    text: 'Run the dashboard apart from the public API, beside others',
    load: async () => (await import('./roles/run-dashboard.ts')).runDashboard,
  },
  {
    name: 'controller',
    text: 'Bring jobs to their end in a cluster, beside others',
    load: async () => (await import('./roles/run-controller.ts')).runController,
  },
  {
    name: 'worker',
    text: 'Run one attempt of one job, told on standard input',
    load: async () => (await import('./roles/run-worker.ts')).runWorkerRole,
  },
  {
    name: 'inspector',
    text: 'Tell what is known of media URLs',
    load: async () => (await import('./roles/run-inspector.ts')).runInspectorRole,
  },
  {
    name: 'egress',
    text: 'Reach the addresses that callers name, and only public ones',
    load: async () => (await import('./roles/run-egress.ts')).runEgressRole,
  },
  {
    name: 'doctor',
    text: 'Judge this machine, the settings and the record',
    load: async () => (await import('./admin/doctor.ts')).runDoctor,
  },
  {
    name: 'manifests',
    text: 'Print the Kubernetes objects that guard the namespace of the workers',
    load: async () => (await import('./admin/manifests.ts')).runManifests,
  },
  {
    name: 'uninstall',
    text: 'Release what workers hold in a cluster, before trawl is removed from it',
    load: async () => (await import('./admin/uninstall.ts')).runUninstall,
  },
  {
    name: 'bootstrap',
    text: 'Create a first account with a key that is given',
    load: async () => (await import('./admin/bootstrap.ts')).runBootstrap,
  },
  {
    name: 'conform',
    text: 'Judge a deployment against the contract, from outside',
    load: async () => (await import('./admin/conform.ts')).runConform,
  },
  {
    name: 'get',
    text: 'Ask a service for files and fetch them, as a caller',
    load: async () => (await import('./client/get.ts')).runGet,
  },
  {
    name: 'login',
    text: 'Keep the address of a service and a key, for trawl get',
    load: async () => (await import('./client/login.ts')).runLogin,
  },
  {
    name: 'mcp',
    text: 'Serve the tools of the Model Context Protocol, as a caller',
    load: async () => (await import('./client/mcp.ts')).runMcp,
  },
  {
    name: 'admin',
    text: 'Plans, accounts, keys, money and logs',
    load: async () => (await import('./admin/admin.ts')).runAdmin,
  },
];

const overview = `Usage: trawl COMMAND …

${roles.map(({ name, text }) => `  ${name.padEnd(10)}  ${text}\n`).join('')}
trawl COMMAND --help tells more, and trawl --version which release this is.
`;

/** Runs a command and returns the exit code. Options may precede the name of the command. */
async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const index = args.findIndex((arg) => !arg.startsWith('-'));
  const role = roles.find(({ name }) => name === args[index]);
  if (role) return run(role, args.toSpliced(index, 1), terminal);
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

async function run(role: Command, args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await (await role.load())(args, terminal);
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

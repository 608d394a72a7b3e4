import { readFileSync } from 'node:fs';
import { type Config, readConfig } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
import { makeLog } from '../base/log.ts';
import { parseOptions, reportError, type Terminal } from './terminal.ts';

const usage = 'trawl uninstall [--force]';
export const uninstallHelp = `Usage: ${usage}

Prepares the removal of trawl from a cluster: refuses while jobs are open, then deletes the Jobs and pods of workers that are
left, with the finalizers that would keep their namespace. The chart runs it before helm uninstall. It reads the settings of the controller.

  --force  Do so although jobs are open. Their accounts keep the credits that are held, and a controller that runs on the same Redis
           later starts them again.
  --help   Show this text.
`;

const options = { force: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;
const required = ['TRAWL_REDIS_URL', 'TRAWL_KUBE_NAMESPACE'] as const;

export async function runUninstall(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const { force = false, help } = parseOptions(args, options, usage);
    if (help) {
      terminal.out(uninstallHelp);
      return 0;
    }
    const config = readConfig(terminal.env, (path) => readFileSync(path, 'utf8'), { required });
    const open = await countOpenJobs(config, terminal);
    if (open > 0 && !force) {
      throw refuse(
        'has_open_jobs',
        `${open} ${open === 1 ? 'job is' : 'jobs are'} open. Repeat helm uninstall when all have ended; helm rollback keeps the release instead.`,
      );
    }
    // Loaded only here, because the Kubernetes client is large and help must be fast.
    const { releaseWorkers } = await import('../runners/kubernetes/release-workers.ts');
    const removed = await releaseWorkers(terminal.env, config.kubeNamespace);
    terminal.out(`${removed} Jobs and pods of workers were deleted, ${open} jobs are open.\n`);
    return 0;
  } catch (error) {
    return reportError(error, false, terminal);
  }
}

async function countOpenJobs(config: Config, { err }: Terminal): Promise<number> {
  const { openStore } = await import('../store/open-store.ts');
  const { readOpenings } = await import('../store/jobs/open-work.ts');
  const { store, close } = await openStore(config, makeLog({ level: 'error', write: err, now: Date.now }));
  try {
    const { queued, active } = await readOpenings(store);
    return queued + active;
  } finally {
    await close();
  }
}

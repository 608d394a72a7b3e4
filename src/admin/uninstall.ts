import { randomUUID } from 'node:crypto';
import { readConfig } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
import type { RecordStore } from '../store/script.ts';
import { allowed, makeProgram } from './command-io.ts';
import { withRecord } from './command-record.ts';
import { wholeNumber } from './command-values.ts';

/** End of the drain when this program dies in between. */
const maxDrainMinutes = 10;
/** The pods of the release are gone before, so the next installation on the same Redis soon admits. */
const lastDrainMinutes = 2;
const usage = 'trawl uninstall [--force] [--wait SECONDS]';
export const uninstallHelp = `Usage: ${usage}

Prepares the removal of trawl from a cluster: drains it, refuses when jobs or calls are still open, then deletes the Jobs and pods of
workers that are left, with the finalizers that would keep their namespace. The chart runs it before helm uninstall. It reads the
settings of the controller. Its drain ends when it refuses, else ${lastDrainMinutes} minutes after its end: an installation on the same Redis admits again.

  --force         Do so although jobs are open, and end the lead of their controller. Their accounts keep the credits that are held, and a
                  controller that runs on the same Redis later starts them again.
  --wait SECONDS  Longest time to wait until nothing is open and no webhook is due (0).
  --help          Show this text.
`;

const options = {
  force: { type: 'boolean' },
  wait: { type: 'string' },
} as const;
const required = ['TRAWL_REDIS_URL', 'TRAWL_KUBE_NAMESPACE'] as const;

const texts = { usage, help: uninstallHelp, options };
export const runCommand = makeProgram(texts, async ({ force = false, wait = '0' }, terminal) => {
  const config = readConfig(terminal.env, { required });
  const seconds = allowed(wholeNumber(0, 86_400)(wait, '--wait'));
  await withRecord(config, terminal, async (store) => {
    const open = await drain(store, seconds * 1000, force);
    // Loaded only here, because the Kubernetes client is large and help must be fast.
    const { releaseWorkers } = await import('../runners/kubernetes/release-workers.ts');
    const keepLead = open === 0 ? null : await leadKeeper(store);
    const removed = await releaseWorkers(terminal.env, config.kubeNamespace, keepLead);
    terminal.out(`${removed} Jobs and pods of workers were deleted, ${open} jobs are open.\n`);
  });
  return 0;
});

/** Begins a drain and waits for its end; returns the number of open jobs and calls. Refuses when there are any, unless forced. */
async function drain(store: RecordStore, maxMs: number, force: boolean): Promise<number> {
  const { beginDrain, countOpen, endDrain } = await import('../store/access/drain.ts');
  const { waitForEnd } = await import('./drain-commands.ts');
  const isOurs = await beginDrain(store, maxMs + maxDrainMinutes * 60_000);
  const open = countOpen(await waitForEnd(store, maxMs));
  if (open === 0 || force) {
    await beginDrain(store, lastDrainMinutes * 60_000);
    return open;
  }
  if (isOurs) await endDrain(store);
  throw refuse(
    'has_open_jobs',
    `${open} ${open === 1 ? 'job is' : 'jobs are'} open. Repeat helm uninstall when all have ended, which trawl admin drain on brings about; helm rollback to the revision that helm history shows last keeps the release instead; with uninstall.force=true open jobs are left behind.`,
  );
}

/** Returns what keeps controllers from beginning attempts: their Jobs would outlast them, and their namespace could not go. */
async function leadKeeper(store: RecordStore): Promise<() => Promise<void>> {
  const { seizeLead } = await import('../store/jobs/leadership.ts');
  const holder = `uninstall-${randomUUID()}`;
  let term = '';
  return async () => {
    term = await seizeLead(store, holder, term);
  };
}

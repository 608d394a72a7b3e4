import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { followChild } from '../support/followed-child.ts';
import { endJob } from '../support/job-steps.ts';
import { completed, failed } from '../support/record.ts';
import { aFolder } from '../support/redis.ts';
import { seed } from '../support/seed.ts';
import { until } from '../support/until.ts';

const list = join(import.meta.dirname, 'requirements.txt');
/** For each of some twenty operations: the long form tries more than 2,000. */
const examples = process.env.ROUNDS === undefined ? 6 : 200;
/** Checks that are off; the comment below says why. */
const off = 'positive_data_acceptance,ignored_auth';
/** Aliases share their handlers with the first path of a route. */
const aliases = '_\\d+$';

/*
 * All checks of schemathesis are on but for:
 * - positive_data_acceptance: valid_data_refusal of softened.py is in its place in the long form. It wants 2xx, too, but lets through the
 *   refusals that no schema can say: two parameters that exclude each other, a cursor that is not ours.
 * - use_after_free after DELETE of a job or a batch: it cancels them, and what became of them can still be read.
 * softened.py has an answer under soft_fail judged by the status that its header tells (D8), names each parameter once, because that of
 * the body wins (D96), and sends no wrong body that is right as a query is spelled: `"1.5"`, or 0 for false (D5).
 * ignored_auth sends requests that no hook sees, so it has a run without soft_fail. A 413 refuses wrong data like every 4xx.
 */
describe(`the API as its document says (schemathesis, SEED=${seed})`, function () {
  this.timeout(process.env.ROUNDS === undefined ? 600_000 : 3_600_000);
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000' });
    caller = await api.addCaller({ credits: 1_000_000, stats: true });
  });
  after(() => api.stop());

  it('answers any request as the document says', async () => {
    const settings: Record<string, string> = process.env.ROUNDS === undefined ? {} : { JUDGES_REFUSALS: 'yes' };
    await fuzz(['--phases', 'examples,coverage,fuzzing,stateful', '--exclude-checks', off], settings);
  });

  it('requires a key where the document does', async () => {
    await fuzz(['--phases', 'examples,coverage', '--checks', 'ignored_auth'], { WITHOUT_SOFT_FAIL: 'yes' });
  });

  async function fuzz(args: readonly string[], settings: Readonly<Record<string, string>> = {}): Promise<void> {
    const program = join(environment(), 'bin', 'schemathesis');
    expect(existsSync(program), 'schemathesis is not installed: run make setup').to.equal(true);
    const { folder, remove } = aFolder();
    const config = join(folder, 'schemathesis.toml');
    // A stream of a job that waits goes on: its first event tells enough.
    writeFileSync(
      config,
      `max-stream-events = 1
hooks = "softened"
[checks.negative_data_rejection]
expected-statuses = ["4xx"]
[[operations]]
include-path-regex = "/v1/(jobs|batches)/"
checks.use_after_free.enabled = false
`,
    );
    const shared = ['--seed', String(seed), '--max-examples', String(examples), '--workers', '1', '--no-color'];
    const quiet = ['--generation-database', 'none', '--suppress-health-check', 'all', '--warnings', 'off'];
    const what = ['--exclude-operation-id-regex', aliases, '-H', `x-api-key: ${caller.key}`];
    const target = ['--config-file', config, 'run', `${api.url}/openapi.json`];
    const env = { ...process.env, ...settings, PYTHONPATH: import.meta.dirname, PYTHONDONTWRITEBYTECODE: '1' };
    const line = [...target, ...shared, ...quiet, ...what, ...args];
    const child = spawn(program, line, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const { output, ended } = followChild(child);
    const endJobs = endAll(api, caller);
    const code = await ended;
    await endJobs();
    remove();
    expect(code, output().slice(-6000)).to.equal(0);
    expect(output()).to.match(/No issues found/);
    expect(api.lines.filter((line) => line.includes('"level":"error"'))).to.deep.equal([]);
  }
});

/** The folder into which .ci/setup has installed the packages of the list. */
function environment(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '', '.cache');
  return join(cache, 'trawl', 'venv', hash('sha256', readFileSync(list)).slice(0, 16));
}

/** Ends every job that waits, well or badly in turn, so that there are ended ones to ask for; until that is ended. */
function endAll({ store }: TestApi, { account }: ApiCaller): () => Promise<void> {
  let isOver = false;
  let ended = 0;
  const done = until(
    async () => {
      const { jobs } = await listJobs(store, account, { status: 'QueuedJob', limit: 100, after: null });
      for (const { id } of jobs) {
        ended += 1;
        // One that was cancelled meanwhile has ended.
        await endJob(store, id, ended % 2 ? completed : failed).catch(() => {});
      }
      return isOver;
    },
    3600,
    'the end',
  );
  return async () => {
    isOver = true;
    await done;
  };
}

import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { endJob } from '../support/job-steps.ts';
import { completed, failed } from '../support/record.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';

const list = join(import.meta.dirname, 'requirements.txt');
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
/** For each of some twenty operations: the long form tries more than 2,000. */
const examples = process.env.ROUNDS === undefined ? 6 : 200;
const always = 'not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance';
/** Aliases share their handlers with the first path of a route. */
const aliases = '_\\d+$';

/*
 * Checks of schemathesis that are off:
 * - positive_data_acceptance: a URL must have a public address, a cursor must be ours; a schema cannot say so.
 * - negative_data_rejection: booleans may be 0 and 1, unknown parameters are ignored (D5).
 * - ignored_auth, unsupported_method: only while soft_fail is free, which answers those errors with 200 too.
 * - missing_required_header, response_headers_conformance: the document requires no header, and promises none.
 * - use_after_free, ensure_resource_availability: a cancelled job can still be read, and a started one may have ended.
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

  it('answers any request as the document says, and requires a key where the document does', async () => {
    const without = '[parameters]\n"query.soft_fail" = false\n';
    const checks = `${always},ignored_auth,unsupported_method`;
    await fuzz(without, ['--phases', 'examples,coverage,fuzzing,stateful', '--checks', checks]);
  });

  it('answers any request as the document says under soft_fail', async () => {
    await fuzz('', ['--phases', 'coverage', '--checks', always]);
  });

  async function fuzz(settings: string, args: readonly string[]): Promise<void> {
    const program = join(environment(), 'bin', 'schemathesis');
    expect(existsSync(program), 'schemathesis is not installed: run make setup').to.equal(true);
    const { folder, remove } = aFolder();
    const config = join(folder, 'schemathesis.toml');
    // A stream of a job that waits goes on: its first event tells enough.
    writeFileSync(config, `max-stream-events = 1\n${settings}`);
    const shared = ['--seed', String(seed), '--max-examples', String(examples), '--workers', '1', '--no-color'];
    const quiet = ['--generation-database', 'none', '--suppress-health-check', 'all', '--warnings', 'off'];
    const what = ['--exclude-operation-id-regex', aliases, '-H', `x-api-key: ${caller.key}`];
    const target = ['--config-file', config, 'run', `${api.url}/openapi.json`];
    const child = spawn(program, [...target, ...shared, ...quiet, ...what, ...args], { cwd: folder });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        said += text;
      });
    }
    const ended = new Promise((resolve) => child.once('close', resolve));
    const endJobs = endAll(api, caller);
    const code = await ended;
    await endJobs();
    remove();
    expect(code, said.slice(-6000)).to.equal(0);
    expect(said).to.match(/No issues found/);
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

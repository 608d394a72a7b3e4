import { execFileSync, spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { rows } from '../contract/page.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { followChild } from '../support/followed-child.ts';
import { endJob } from '../support/job-steps.ts';
import { completed, failed } from '../support/record.ts';
import { aFolder } from '../support/redis.ts';
import { seed } from '../support/seed.ts';
import { read } from '../support/tree.ts';
import { until } from '../support/until.ts';

const list = join(import.meta.dirname, 'requirements.txt');
const isLong = process.env.ROUNDS !== undefined;
/** For each operation, besides those of the coverage phase. */
const examples = isLong ? 20 : 6;
/** Fewest examples of the long form in all. */
const leastExamples = 2000;

/** Aliases share their handlers with the first path of a route. */
const aliases = ['--exclude-operation-id-regex', '_[0-9]+$'];
/** The long form alone: random data of every day would meet the next refusal that no document can say. */
const acceptance = ['--exclude-checks', 'positive_data_acceptance'];

/*
 * All checks of schemathesis are on in the long form. excuses.py has an answer under soft_fail judged by the status that its header tells
 * (D8), and drops the failures that it names: by operation, check and the rule that no document can say. A 413 refuses wrong data like
 * every 4xx. The summary counts as errored what Hypothesis has ended for the length of its random data before it was sent; each request
 * that was sent must have an answer.
 */
describe(`the API as its document says (schemathesis, SEED=${seed})`, function () {
  this.timeout(isLong ? 3_600_000 : 600_000);
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    // Links that it answers are asked for as media, too, and their host is to be a public one.
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000', TRAWL_PUBLIC_URL: 'https://trawl.example' });
    caller = await api.addCaller({ credits: 1_000_000, stats: true });
  });
  after(() => api.stop());

  it('answers any request as the document says, and requires a key where it does', async () => {
    const { summary, used } = await fuzz(isLong ? aliases : [...aliases, ...acceptance]);
    if (!isLong) return;
    console.log(summary, ...[...used].map(([excuse, times]) => `${times} times excused: ${excuse}\n`));
    expect(Number(/(\d+) generated/.exec(summary)?.[1])).to.be.at.least(leastExamples);
    expect(excusesToUse().filter((excuse) => !used.has(excuse))).to.deep.equal([]);
  });

  it('excuses nothing but what the contract or docs/api.md says', () => {
    const [page, code] = [read('docs/api.md'), read('test/api/excuses.py')];
    const wordsOf = new Map([['docs/api.md', page], ...rows.map(({ id, sentence }) => [id, sentence] as const)]);
    const rules = [...code.matchAll(/"(docs\/api\.md|[\w-]*\d|stats-\w+): ([^"]+)"/g)];
    expect(rules).to.have.length.at.least(12);
    expect(
      rules.filter(([, where, words]) => !wordsOf.get(where!)?.includes(words!)).map(([rule]) => rule),
    ).to.deep.equal([]);
  });

  /** Runs schemathesis; returns the summary of its output, and how often each excuse was used. */
  async function fuzz(args: readonly string[]) {
    const program = join(environment(), 'bin', 'schemathesis');
    expect(existsSync(program), 'schemathesis is not installed: run make setup').to.equal(true);
    const { folder, remove } = aFolder();
    const config = join(folder, 'schemathesis.toml');
    // A stream of a job that waits goes on: its first event tells enough.
    writeFileSync(
      config,
      `max-stream-events = 1
hooks = "excuses"
[checks.negative_data_rejection]
expected-statuses = ["4xx"]
`,
    );
    const noted = join(folder, 'excuses-used');
    writeFileSync(noted, '');
    const shared = ['--seed', String(seed), '--max-examples', String(examples), '--workers', '1', '--no-color'];
    const quiet = ['--generation-database', 'none', '--suppress-health-check', 'all', '--warnings', 'off'];
    const target = ['--config-file', config, 'run', `${api.url}/openapi.json`, '--url', api.url];
    const line = [...target, ...shared, ...quiet, '-H', `x-api-key: ${caller.key}`, ...args];
    const unanswered = join(folder, 'unanswered');
    const env = { ...process.env, ...python, EXCUSES_USED: noted, UNANSWERED: unanswered };
    const child = spawn(program, line, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const { output, ended } = followChild(child);
    const endJobs = endAll(api, caller);
    const code = await ended;
    await endJobs();
    const used = countLines(readFileSync(noted, 'utf8'));
    const silent = readFileSync(unanswered, 'utf8');
    remove();
    expect(code, output().slice(-6000)).to.equal(0);
    expect(output()).to.match(/No issues found/);
    expect(silent, 'requests without an answer').to.equal('');
    expect(api.lines.filter((line) => line.includes('"level":"error"'))).to.deep.equal([]);
    return { summary: output().split(' SUMMARY ').at(-1) ?? '', used };
  }
});

const python = { PYTHONPATH: import.meta.dirname, PYTHONDONTWRITEBYTECODE: '1' };

/** Returns the excuses that each long form uses, as excuses.py notes their use. */
function excusesToUse(): string[] {
  const line = ['-c', 'import excuses; print("\\n".join(excuses.named(*one[:3]) for one in excuses.USUAL))'];
  const env = { ...process.env, ...python };
  return execFileSync(join(environment(), 'bin', 'python'), line, { env, encoding: 'utf8' })
    .trim()
    .split('\n');
}

function countLines(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of text.split('\n')) if (line !== '') counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

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

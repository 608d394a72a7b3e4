import { expect } from 'chai';
import { refuse } from '../../src/base/errors.ts';
import { type Metrics, makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { startLedgerCheck } from '../../src/controller/ledger-check.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { keys } from '../../src/store/keys.ts';
import { readLedgerWalk } from '../../src/store/log/ledger-walk.ts';
import type { Connection } from '../../src/store/redis/connection.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anAccount, type TestStore } from '../support/record.ts';
import { aLog, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('the check of all ledgers', () => {
  let redis: TestRedis;
  let store: TestStore;
  const running: { close(): Promise<void> }[] = [];
  eachWithEmptyRecord((fresh, server) => {
    [store, redis] = [fresh, server];
  });
  afterEach(() => Promise.all(running.splice(0).map((check) => check.close())));

  const begin = (connection: Partial<Connection> = {}, isLeading = () => true) => {
    const metrics = makeMetrics();
    const { lines, log } = aLog();
    const broken = { ...store, connection: { ...store.connection, ...connection } };
    const check = startLedgerCheck({ store: broken, metrics, isLeading, log, tickMs: 10 });
    running.push(check);
    return { metrics, lines, close: check.close };
  };
  const someAccounts = async (count: number) => {
    for (let n = 0; n < count; n++) await anAccount(store, { credits: 1 });
  };
  const ended = async (problems: number) => (await readLedgerWalk(store)).lastProblems === problems;
  /** Reads of ledgers, as a proxy for the accounts that were checked. */
  const countLedgers = (fail: (nth: number) => boolean = () => false) => {
    const seen: string[] = [];
    const run: Connection['eval'] = async (lua, sha, names, args) => {
      const isRead = lua.includes('in_hand');
      if (isRead) seen.push(String(args[1]));
      if (isRead && fail(seen.length)) throw refuse('unavailable');
      return store.connection.eval(lua, sha, names, args);
    };
    return { seen, eval: run };
  };

  it('goes on where it stopped when reads fail in between, which are warnings and a count', async () => {
    await someAccounts(5);
    const reads = countLedgers((nth) => nth % 2 === 0);
    const { metrics, lines } = begin({ eval: reads.eval });
    await until(() => ended(0), 10, 'a complete check');
    expect(reads.seen).to.have.length(9);
    expect(new Set(reads.seen).size).to.equal(5);
    expect(lines.filter((line) => line.includes('"warn"') && line.includes('broke off'))).to.have.length(4);
    expect(await renderMetrics(metrics)).to.match(/^trawl_upkeep_errors_total\{task="verify"\} 4$/m);
  });

  it('goes on in another controller at the page where the first one stopped', async () => {
    // A small table would be one page.
    await redis.connection.send(['CONFIG', 'SET', 'hash-max-listpack-entries', '16']);
    await someAccounts(400);
    const reads = countLedgers((nth) => nth > 250);
    const first = begin({ eval: reads.eval });
    await until(() => reads.seen.length > 250, 10, 'half of the check');
    await first.close();
    const rest = countLedgers();
    begin({ eval: rest.eval });
    await until(() => ended(0), 10, 'a complete check');
    expect(rest.seen.length).to.be.below(300);
    expect(new Set([...reads.seen, ...rest.seen]).size).to.equal(400);
  });

  it('counts an account that cannot be checked as a problem, and checks the others', async () => {
    await someAccounts(3);
    const broken = await anAccount(store);
    await store.connection.send(['SET', keys.ledgerDays(broken.accountId), 'no list']);
    const { metrics, lines } = begin();
    await until(() => ended(1), 10, 'a complete check');
    expect(lines.filter((line) => line.includes('a ledger cannot be checked'))).to.have.length(1);
    expect(await renderMetrics(metrics)).to.match(/^trawl_ledger_problems 1$/m);
  });

  it('includes removed accounts, and names each problem', async () => {
    const removed = await anAccount(store, { credits: 2 });
    await store.connection.send(['HINCRBY', keys.account(removed.accountId), 'credits_given', '1']);
    await removeAccount(store, removed.accountId, removed.slug);
    const { lines } = begin();
    await until(() => ended(1), 10, 'a complete check');
    expect(lines.filter((line) => line.includes(removed.slug) && line.includes('credits given'))).to.have.length(1);
  });

  it('is made once an hour, and its age is a metric', async () => {
    await someAccounts(1);
    const reads = countLedgers();
    const { metrics } = begin({ eval: reads.eval });
    await until(() => ended(0), 10, 'a complete check');
    store.advance(3_599_000);
    expect(await renderMetrics(metrics)).to.match(/^trawl_ledger_verify_age_seconds 3(599|60\d)(\.\d+)?$/m);
    expect(reads.seen).to.have.length(1);
    store.advance(2_000);
    await until(() => reads.seen.length === 2, 10, 'the next check');
  });

  it('is made again at once after the clock of Redis was ahead during the last one', async () => {
    await someAccounts(1);
    const reads = countLedgers();
    store.advance(400 * 86_400_000);
    begin({ eval: reads.eval });
    await until(() => ended(0), 10, 'a complete check');
    store.advance(-400 * 86_400_000);
    await until(() => reads.seen.length === 2, 10, 'the next check');
  });

  it('has an age from its first beginning on, also while it never ends', async () => {
    await someAccounts(1);
    const { metrics } = begin({ eval: countLedgers(() => true).eval });
    await until(
      async () => /^trawl_upkeep_errors_total\{task="verify"\} [1-9]/m.test(await renderMetrics(metrics)),
      10,
      'a failure',
    );
    store.advance(7_200_000);
    expect(await renderMetrics(metrics)).to.match(/^trawl_ledger_verify_age_seconds 72\d\d(\.\d+)?$/m);
  });

  it('is left to the controller that leads', async () => {
    await someAccounts(1);
    const reads = countLedgers();
    let leads = false;
    const { metrics } = begin({ eval: reads.eval }, () => leads);
    expect(await renderMetrics(metrics)).not.to.match(/^trawl_ledger_verify_age_seconds /m);
    leads = true;
    await until(() => reads.seen.length === 1, 10, 'the check');
  });

  it('shows neither its age nor its problems once its controller has lost the lead', async () => {
    await someAccounts(1);
    const gauges = ['trawl_ledger_problems', 'trawl_ledger_verify_age_seconds'];
    const shown = async (metrics: Metrics) => {
      const text = await renderMetrics(metrics);
      return gauges.filter((name) => text.includes(`\n${name} `));
    };
    let leads = true;
    const { metrics } = begin({}, () => leads);
    await until(() => ended(0), 10, 'a complete check');
    expect(await shown(metrics)).to.deep.equal(gauges);
    leads = false;
    expect(await shown(metrics)).to.deep.equal([]);
    leads = true;
    expect(await shown(metrics)).to.deep.equal(gauges);
  });
});

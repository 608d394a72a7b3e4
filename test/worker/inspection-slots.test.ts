import { expect } from 'chai';
import { InspectorBusy, ShareUsedUp, type SlotWaits, shareSlots } from '../../src/worker/inspection-slots.ts';
import { until } from '../support/until.ts';

const long = { maxWaitMs: 60_000, claimMs: 60_000 };
const maySay = new AbortController().signal;

/** Inspections of accounts that run until they are told to end. */
function makeRuns(slots: number, waits: SlotWaits) {
  const runInSlot = shareSlots(slots, waits);
  const running: { readonly account: string; readonly end: () => void }[] = [];
  const start = (account: string, gone = maySay) => {
    const ended = runInSlot(account, gone, async (signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const own = { account, end: resolve };
      running.push(own);
      signal.addEventListener('abort', () => reject(new Error('stopped')));
      await promise.finally(() => running.splice(running.indexOf(own), 1));
      return 'done';
    });
    return ended.catch((error: unknown) => error);
  };
  const names = () => running.map(({ account }) => account).join('');
  const end = (account: string) => running.find((one) => one.account === account)?.end();
  return { start, names, end };
}

describe('the slots of the inspector', () => {
  it('go to an account up to half of them, and another account still starts at once', () => {
    const { start, names } = makeRuns(8, long);
    for (let n = 0; n < 8; n++) void start('a');
    expect(names()).to.equal('aaaa');
    void start('b');
    expect(names()).to.equal('aaaab');
  });

  it('are given first to who uses fewest, whoever waits longer', async () => {
    const { start, names, end } = makeRuns(4, long);
    for (const account of 'aabc') void start(account);
    expect(names()).to.equal('aabc');
    for (const account of 'abd') void start(account);
    end('a');
    await until(() => names() === 'abcd', 1, 'd runs');
    end('b');
    await until(() => names() === 'acdb', 1, 'b runs');
  });

  it('are taken from the youngest inspection of who uses most, when an account that uses none has waited', async () => {
    const { start, names } = makeRuns(4, { ...long, claimMs: 20 });
    const first = start('a');
    const [second] = [start('a'), start('b'), start('c')];
    expect(names()).to.equal('aabc');
    void start('d');
    expect(await second).to.be.instanceOf(ShareUsedUp);
    await until(() => names() === 'abcd', 1, 'd runs');
    // Everybody uses one now: nothing is taken from anybody.
    const late = start('e');
    expect(await Promise.race([first, late, new Promise((resolve) => setTimeout(resolve, 100, 'waits'))])).to.equal(
      'waits',
    );
    expect(names()).to.equal('abcd');
  });

  it('are refused after the longest wait: as share to who uses some, as busy to who uses none', async () => {
    const { start } = makeRuns(2, { ...long, maxWaitMs: 20 });
    void start('a');
    void start('b');
    expect(await start('a')).to.be.instanceOf(ShareUsedUp);
    expect(await start('c')).to.be.instanceOf(InspectorBusy);
  });

  it('are refused at once when the account has half of the queue, and another account may still wait', async () => {
    const { start, names, end } = makeRuns(2, long);
    void start('a');
    void start('b');
    const asked = Array.from({ length: 5 }, () => start('a'));
    expect(await asked[4]).to.be.instanceOf(ShareUsedUp);
    void start('c');
    end('b');
    await until(() => names() === 'ac', 1, 'c runs');
  });

  it('are not kept for a caller who has gone while it waited', async () => {
    const { start, names, end } = makeRuns(1, long);
    void start('a');
    const gone = new AbortController();
    const left = start('b', gone.signal);
    void start('c');
    gone.abort();
    expect(await left).to.be.instanceOf(InspectorBusy);
    end('a');
    await until(() => names() === 'c', 1, 'c runs');
  });

  it('are free again after a failure', async () => {
    const runInSlot = shareSlots(1);
    const fail = () => Promise.reject(new Error('no'));
    for (let n = 0; n < 2; n++) expect(await runInSlot('a', maySay, fail).catch(String)).to.equal('Error: no');
  });
});

import { expect } from 'chai';
import { coalesceRuns, shareRun } from '../../src/base/single-flight.ts';

/** Work of which each run is ended by the test. */
function aWork() {
  const runs: PromiseWithResolvers<void>[] = [];
  const work = () => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  };
  return { runs, work };
}

const soon = () => new Promise((resolve) => setImmediate(resolve));

describe('single flight', () => {
  it('shares the run under way between all callers during it, and starts a new one afterwards', async () => {
    const { runs, work } = aWork();
    const flight = shareRun(work);
    const both = [flight.run(), flight.run()];
    expect(runs).to.have.lengthOf(1);
    runs[0]?.resolve();
    await Promise.all(both);
    void flight.run();
    expect(runs).to.have.lengthOf(2);
  });

  it('gives an error of a run to all callers that share it, and starts a new one afterwards', async () => {
    const { runs, work } = aWork();
    const flight = shareRun(work);
    const both = [flight.run(), flight.run()].map((run) => run.catch(String));
    runs[0]?.reject(new Error('no'));
    expect(await Promise.all(both)).to.deep.equal(['Error: no', 'Error: no']);
    void flight.run();
    expect(runs).to.have.lengthOf(2);
  });

  it('runs once more after a run during which others were asked for, however many', async () => {
    const { runs, work } = aWork();
    const flight = coalesceRuns(work);
    let isOver = false;
    void flight.run().then(() => {
      isOver = true;
    });
    for (let caller = 0; caller < 3; caller++) void flight.run();
    runs[0]?.resolve();
    await soon();
    expect([runs.length, isOver]).to.deep.equal([2, false]);
    runs[1]?.resolve();
    await soon();
    expect([runs.length, isOver]).to.deep.equal([2, true]);
  });

  it('settles with the run under way, and starts none', async () => {
    const { runs, work } = aWork();
    const flight = shareRun(work);
    await flight.settled();
    expect(runs).to.have.lengthOf(0);
    const run = flight.run();
    const settled = flight.settled();
    runs[0]?.resolve();
    await Promise.all([run, settled]);
    expect(runs).to.have.lengthOf(1);
  });
});

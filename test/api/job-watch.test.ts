import { expect } from 'chai';
import { makeJobWatches } from '../../src/api/job-watch.ts';
import { refuse } from '../../src/base/errors.ts';
import type { RecordStore } from '../../src/store/script.ts';

const maxOfAccount = 100;

describe('watches of jobs', () => {
  let isAway: boolean;
  let draining: AbortController;
  let watch: (id: string) => ReturnType<ReturnType<typeof makeJobWatches>>;
  beforeEach(() => {
    isAway = false;
    draining = new AbortController();
    const subscribe = async () => {
      if (isAway) throw refuse('unavailable');
      return async () => {};
    };
    const store = { connection: { subscribe, eval: async () => ['marked'] }, clock: { offset: () => 0 } };
    const watchJob = makeJobWatches(store as unknown as RecordStore, { rereadMs: 60_000, draining: draining.signal });
    watch = (id) => watchJob({ id, account: 'x', revision: 0 });
  });

  it('end every wait at once when they are closed or their server drains', async () => {
    const [closed, drained] = [await watch('a'), await watch('b')];
    closed.close();
    draining.abort();
    await Promise.all([closed.changed(60_000), drained.changed(60_000)]);
    expect(await watch('c').catch(({ code }) => code)).to.equal('unavailable');
    drained.close();
  });

  it('count among the 100 of their account until they are closed, once or twice', async () => {
    for (let n = 0; n <= maxOfAccount; n++) {
      const one = await watch('a');
      one.close();
      one.close();
    }
    const open = await Promise.all(Array.from({ length: maxOfAccount }, () => watch('a')));
    expect(await watch('a').catch(({ code }) => code)).to.equal('rate_limited');
    for (const one of open) one.close();
  });

  it('do not count where Redis could not begin them', async () => {
    isAway = true;
    for (let n = 0; n <= maxOfAccount; n++) expect(await watch('a').catch(({ code }) => code)).to.equal('unavailable');
    isAway = false;
    (await watch('a')).close();
  });
});

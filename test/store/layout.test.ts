import { expect } from 'chai';
import { goneMs, leaseMs, type ReleaseLayouts, unseenMs } from '../../src/model/record-layout.ts';
import { keys } from '../../src/store/keys.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { moveLayout, prepareSchema, readRecordState } from '../../src/store/schema.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import type { TestStore } from '../support/record.ts';

const old: ReleaseLayouts = { release: '1.0.0', own: 3, oldest: 2 };
const next: ReleaseLayouts = { release: '2.0.0', own: 4, oldest: 3 };

describe('releases of two layouts', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  const note = (mine: ReleaseLayouts) => prepareSchema(store, mine);
  const move = async (isAsked = false) => (await moveLayout(store, await note(next), isAsked, next)).step;
  const sentence = (mine: ReleaseLayouts) => note(mine).catch((error: Error) => error.message);

  it('share a record until the older one was not seen for an hour, and then the older one is refused', async () => {
    await note(old);
    expect(await readRecordState(store)).to.deep.include({ layout: 3, leastRelease: '1.0.0' });
    expect(await move()).to.equal('running');
    store.advance(goneMs);
    expect(await move()).to.equal('waiting');
    store.advance(unseenMs - goneMs - 1_000);
    await Promise.all([note(old), note(next)]);
    store.advance(unseenMs - 1_000);
    expect(await move()).to.equal('waiting');
    store.advance(2_000);
    expect(await move()).to.equal('sealed');
    expect(await sentence(old)).to.match(
      /^The record has layout 4, which trawl 2\.0\.0 or newer reads, and this is trawl 1\.0\.0/,
    );
    const { seen } = await note(next);
    expect(seen[0]).to.include({ release: '2.0.0', layout: 4 });
    expect(Number(seen[0]?.lastSeen) - Number(seen[0]?.firstSeen)).to.be.within(
      2 * unseenMs - goneMs - 10_000,
      3 * unseenMs,
    );
  });

  it('are sealed by an operator as soon as the older one is gone, also when both ask at one moment', async () => {
    await note(old);
    expect(await move(true)).to.equal('running');
    store.advance(goneMs);
    const state = await note(next);
    // An older process begins between the look at the record and the change.
    await note(old);
    expect((await moveLayout(store, state, true, next)).step).to.equal('running');
    store.advance(goneMs);
    expect(await Promise.all([move(true), move(true)])).to.deep.equal(['sealed', 'sealed']);
  });

  it('leave a note for a day, and one that is refused leaves none', async () => {
    await note(next);
    expect(await sentence(old)).to.match(/layout 4/);
    store.advance(24 * unseenMs);
    const { seen } = await note({ ...next, release: '2.0.1' });
    expect(seen.map(({ release }) => release)).to.deep.equal(['2.0.1']);
    expect(await store.connection.send(['HLEN', keys.releases])).to.equal(1);
  });

  it('change nothing before they have looked at the record again, once their lease is over', async () => {
    const offer = { name: 'o', title: 'P', credits: 1, price_cents: 1, currency: 'eur' } as const;
    let looks = 0;
    const release = {
      endsAt: 0,
      layout: () => 3,
      refusal: () => null,
      renew: () => {
        looks++;
        return Promise.reject(new Error('refused'));
      },
    };
    const changed = await setOffer({ ...store, release }, offer).catch((error: Error) => error.message);
    expect([changed, looks]).to.deep.equal(['refused', 1]);
    expect(await store.connection.send(['EXISTS', keys.offers])).to.equal(0);
    expect(goneMs).to.be.above(leaseMs + 30_000);
  });
});

import { expect } from 'chai';
import { refuse } from '../../src/base/errors.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { noteAccountResumed, readRevocations, revoke } from '../../src/objects/revocations.ts';
import { aFolder } from '../support/redis.ts';

describe('the note of a revocation', () => {
  const now = Date.UTC(2030, 0, 1);
  const suspension = { kind: 'account', account: 'acme' } as const;
  let objects: FolderStore;
  let remove: () => void;
  beforeEach(async () => {
    const place = aFolder();
    remove = place.remove;
    const seal = makeSeal({ secret: Buffer.alloc(32, 7), old: null });
    objects = await openFolder({ folder: place.folder, seal, now: Date.now });
  });
  afterEach(() => remove());

  const open = async () => objects;
  const suspend = (change: () => Promise<unknown>) => revoke(open, now, suspension, change).catch((error) => error);
  const noted = async () => (await readRevocations(objects, 0)).map(({ kind, at }) => ({ kind, at }));

  it('stays after a change of which nobody knows whether Redis has made it', async () => {
    const lost = refuse('unavailable');
    expect(await suspend(() => Promise.reject(lost))).to.equal(lost);
    expect(await noted()).to.deep.equal([{ kind: 'account', at: now }]);
  });

  it('goes with a change that is refused', async () => {
    const refused = refuse('not_found');
    expect(await suspend(() => Promise.reject(refused))).to.equal(refused);
    expect(await noted()).to.deep.equal([]);
  });

  it('stands beside a return that began in the same millisecond, and not beside a later one', async () => {
    await suspend(async () => null);
    await noteAccountResumed(open, now, suspension.account);
    expect(await noted()).to.deep.equal([{ kind: 'account', at: now }]);
    await noteAccountResumed(open, now + 1, suspension.account);
    expect(await noted()).to.deep.equal([]);
  });
});

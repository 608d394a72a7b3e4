import { expect } from 'chai';
import { archiveDays, removeArchivedDays } from '../../src/archive/archive-days.ts';
import { readJsonLines } from '../../src/archive/json-lines.ts';
import { inParallel } from '../../src/base/in-parallel.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import type { Actor, AuditAction, AuditEntry } from '../../src/model/audit.ts';
import { recordLimits } from '../../src/model/record-limits.ts';
import { openFolder } from '../../src/objects/folder-store.ts';
import { clearBlock } from '../../src/store/access/clear-block.ts';
import { countAuthFailure } from '../../src/store/access/count-auth-failure.ts';
import { beginDrain, endDrain } from '../../src/store/access/drain.ts';
import { createAccount } from '../../src/store/accounts/create-account.ts';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { deleteKey } from '../../src/store/accounts/delete-key.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { removePlan } from '../../src/store/accounts/remove-plan.ts';
import { rotateKey } from '../../src/store/accounts/rotate-key.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { keys } from '../../src/store/keys.ts';
import { readAudit } from '../../src/store/log/read-audit.ts';
import { wholeService } from '../../src/store/lua/note-change.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { grantCredits } from '../../src/store/money/grant-credits.ts';
import { removeOffer, setOffer } from '../../src/store/money/offers.ts';
import { setTopup } from '../../src/store/money/set-topup.ts';
import { noteOperation } from '../../src/store/note-operation.ts';
import { setPassword } from '../../src/store/people/change-session.ts';
import { invitePerson } from '../../src/store/people/invite-person.ts';
import { openSession } from '../../src/store/people/open-session.ts';
import { addPasskey, removePasskey } from '../../src/store/people/passkeys.ts';
import { removePerson } from '../../src/store/people/remove-person.ts';
import { layouts, moveLayout } from '../../src/store/schema.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { aSecret } from '../support/people-scenarios.ts';
import { anAccount, aPlan, type TestStore } from '../support/record.ts';
import { aFolder, aLog } from '../support/redis.ts';

const day = 86_400_000;
const person: Actor = { via: 'dashboard', who: 'ada@example.com', from: '192.0.2.9' };
const operator: Actor = { via: 'command', who: 'root', from: 'host' };
const anOffer = { name: 'big', title: 'Big', credits: 9, price_cents: 900, currency: 'eur' } as const;
const hashOf = (letter: string) => letter.repeat(64);

type Caller = Awaited<ReturnType<typeof anAccount>>;
interface Row {
  /** Makes what the change needs, without an author. */
  readonly prepare?: (store: RecordStore, caller: Caller) => Promise<unknown>;
  readonly change: (store: RecordStore, caller: Caller) => Promise<unknown>;
  readonly target: (caller: Caller) => string;
  /** A change of the service, which no account shows. */
  readonly isOfService?: true;
}

const email = person.who;
const link = aSecret(email);
const session = aSecret(email);
const invite = (store: RecordStore, { accountId }: Caller) =>
  invitePerson(store, { accountId, email, role: 'owner', secret: link.text, isBound: false });
const enter = (store: RecordStore, proof: Parameters<typeof openSession>[1]) =>
  openSession(store, proof, { session, oldHash: '', ip: person.from, agent: '' });
const signIn = async (store: RecordStore, caller: Caller) => {
  await invite(store, caller);
  await enter(store, { linkHash: link.secretHash });
};
const passkey = { id: 'passkey', name: 'laptop', key: 'key', counter: 0, transports: [] };
const aliasOf = ({ keyId }: Caller) => keyId.slice(0, 8);

const operation = (action: AuditAction): Row => ({
  change: (store) => noteOperation(store, '', { action, target: 'id' }),
  target: () => 'id',
  isOfService: true,
});

const rows: Readonly<Record<AuditAction, Row>> = {
  'account.create': {
    change: (store) => createAccount(store, 'other', 'fresh', { name: 'Fresh', webhook_secret: 'hidden' }),
    target: () => 'fresh',
  },
  'account.change': {
    change: (store, { accountId }) => setAccount(store, accountId, { weight: 3, webhook_secret: 'hidden' }),
    target: () => '',
  },
  'account.remove': {
    change: (store, { accountId, slug }) => removeAccount(store, accountId, slug),
    target: ({ slug }) => slug,
  },
  'key.create': {
    change: (store, { accountId }) => createKey(store, accountId, { id: 'k', alias: 'new', hash: hashOf('a') }),
    target: () => 'new',
  },
  'key.change': {
    change: (store, caller) => setKey(store, caller.accountId, aliasOf(caller), { active: false }),
    target: aliasOf,
  },
  'key.rotate': {
    change: (store, caller) => {
      const made = { id: 'n', hash: hashOf('b'), oldAlias: 'old', overlapMs: 1000 };
      return rotateKey(store, caller.accountId, aliasOf(caller), made);
    },
    target: aliasOf,
  },
  'key.delete': {
    change: (store, caller) => deleteKey(store, caller.accountId, aliasOf(caller)),
    target: aliasOf,
  },
  'plan.set': { change: (store) => aPlan(store, 'gold', { quota: 9 }), target: () => 'gold', isOfService: true },
  'plan.remove': {
    prepare: (store) => aPlan(store, 'gold', { quota: 9 }),
    change: (store) => removePlan(store, 'gold'),
    target: () => 'gold',
    isOfService: true,
  },
  'offer.set': { change: (store) => setOffer(store, anOffer), target: () => 'big', isOfService: true },
  'offer.remove': {
    prepare: (store) => setOffer(store, anOffer),
    change: (store) => removeOffer(store, 'big'),
    target: () => 'big',
    isOfService: true,
  },
  'pack.add': {
    change: (store, { accountId }) => addPack(store, accountId, { id: 'p', title: 'P', total: 1, purchased_at: 1 }),
    target: () => 'P',
  },
  'credits.add': {
    change: (store, { accountId }) => grantCredits(store, accountId, 5, { reason: 'sorry' }),
    target: () => '',
  },
  'topup.change': {
    change: (store, { accountId }) => setTopup(store, accountId, { enabled: '1', monthly_cap_cents: '900' }),
    target: () => '',
  },
  'person.invite': { change: invite, target: () => email },
  'person.remove': {
    prepare: invite,
    change: (store, { accountId }) => removePerson(store, accountId, email),
    target: () => email,
  },
  'person.password': {
    prepare: signIn,
    change: (store, { accountId }) => setPassword(store, { ...session, accountId }, 'hidden'),
    target: () => person.who,
  },
  'person.identity': {
    prepare: invite,
    change: (store, { accountId }) => enter(store, { identity: 'https://id.example.com ada', accountId, email }),
    target: () => email,
  },
  'passkey.add': {
    prepare: signIn,
    change: (store, { accountId }) => addPasskey(store, { ...session, accountId }, passkey),
    target: () => 'laptop',
  },
  'passkey.remove': {
    prepare: async (store, caller) => {
      await signIn(store, caller);
      await addPasskey(store, { ...session, ...caller }, passkey);
    },
    change: (store, { accountId }) =>
      removePasskey(store, { ...session, passkeyId: passkey.id, scope: '', accountId }, true),
    target: () => 'laptop',
  },
  'drain.on': { change: (store) => beginDrain(store), target: () => '', isOfService: true },
  'drain.off': { prepare: (store) => beginDrain(store), change: endDrain, target: () => '', isOfService: true },
  'record.restore': operation('record.restore'),
  'record.seal': {
    prepare: ({ connection }) => connection.send(['SET', keys.schema, String(layouts.own - 1)]),
    change: (store) => moveLayout(store, { layout: layouts.own - 1, leastRelease: '', seen: [] }, true),
    target: () => '',
    isOfService: true,
  },
  'secret.reseal': operation('secret.reseal'),
  'job.cancel': {
    change: (store, { accountId }) => noteOperation(store, accountId, { action: 'job.cancel', target: 'id' }),
    target: () => 'id',
  },
  'webhook.replay': operation('webhook.replay'),
  'block.clear': {
    prepare: (store) => countAuthFailure(store, '192.0.2.7', { maxFailures: 1, windowMs: day, blockMs: day }),
    change: (store) => clearBlock(store, '192.0.2.7'),
    target: () => '192.0.2.7',
    isOfService: true,
  },
};

describe('the audit log', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  const open = async () => null;
  const read = (id = wholeService, limit = 100) => readAudit(store, id, { limit, open });

  for (const [action, { prepare, change, target, isOfService }] of Object.entries(rows)) {
    it(`has one entry of ${action}, without a secret, for the service and for the account that it concerns`, async () => {
      const caller = await anAccount(store);
      await prepare?.(store, caller);
      expect(await read(), 'changes without an author').to.deep.equal([]);
      const before = store.clock.now();
      await change({ ...store, actor: person }, caller);
      const entries = await read();
      expect(entries).to.have.length(1);
      const account = action === 'account.create' ? 'other' : isOfService ? '' : caller.accountId;
      expect(entries[0]).to.deep.include({ ...person, action, account, target: target(caller) });
      expect(entries[0]!.at).to.be.within(before, store.clock.now());
      expect(JSON.stringify(entries)).not.to.match(/hidden|([ab])\1{63}/);
      // Each of the two streams names its entry by the millisecond in which it was written.
      const withoutId = (all: readonly AuditEntry[]) => all.map(({ entry: _, ...rest }) => rest);
      if (account !== '') expect(withoutId(await read(account))).to.deep.equal(withoutId(entries));
      else expect(await read(caller.accountId)).to.deep.equal([]);
    });
  }

  it('has no entry of a change that was refused', async () => {
    const caller = await anAccount(store);
    const acting = { ...store, actor: operator };
    const refused = [
      () => setKey(acting, caller.accountId, 'unknown', { active: false }),
      () => createKey(acting, caller.accountId, { id: 'k', alias: aliasOf(caller), hash: hashOf('c') }),
      () => setAccount(acting, caller.accountId, { plan: 'unknown' }),
      () => removePlan(acting, 'unknown'),
      () => removePerson(acting, caller.accountId, email),
    ];
    for (const change of refused)
      expect(await change().catch((error: { code: string }) => error.code)).to.be.a('string');
    expect([await removeOffer(acting, 'unknown'), await clearBlock(acting, '192.0.2.8')]).to.deep.equal([false, false]);
    expect(await read()).to.deep.equal([]);
  });

  it('has one entry of a grant that is repeated with its id', async () => {
    const { accountId } = await anAccount(store);
    for (const _ of [1, 2]) await grantCredits({ ...store, actor: operator }, accountId, 5, { id: 'once' });
    expect(await read(accountId)).to.have.length(1);
  });

  it('cuts a long text of a change, and keeps the rest', async () => {
    const caller = await anAccount(store);
    await setAccount({ ...store, actor: operator }, caller.accountId, { name: 'n'.repeat(500), weight: 2 });
    const [entry] = await read(caller.accountId);
    expect(entry?.change).to.deep.equal({ name: `${'n'.repeat(200)}…`, weight: 2 });
  });

  it('lets a person add nothing when the account has as many entries as it may, but take rights away, and an operator everything', async () => {
    const caller = await anAccount(store);
    const full = Array.from({ length: recordLimits.auditEntriesOfAccount }, () => ['at', '1', 'note', '{}']);
    const stream = keys.audit(caller.accountId);
    // A busy Redis answers so many at once too late.
    await inParallel(20, full, (fields) => store.connection.send(['XADD', stream, '*', ...fields]));
    const add = (actor: Actor) =>
      createKey({ ...store, actor }, caller.accountId, { id: 'k', alias: 'more', hash: hashOf('d') });
    const code = await add(person).catch((error: { code: string }) => error.code);
    expect(code).to.equal('too_many');
    expect(await store.connection.read(['HGET', keys.keyring(caller.accountId), 'more'])).to.equal(null);
    const acting = { ...store, actor: person };
    expect(await setKey(acting, caller.accountId, aliasOf(caller), { active: false })).to.include({ active: false });
    await deleteKey(acting, caller.accountId, aliasOf(caller));
    await add(operator);
    expect((await read()).map(({ action }) => action)).to.deep.equal(['key.create', 'key.delete', 'key.change']);
  });

  it('moves to the object store after a day, is read from there by pages, and is kept for a year', async () => {
    const { folder, remove } = aFolder();
    const objects = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
    const goOn = () => true;
    const fail = (error: unknown) => Promise.reject(error);
    const caller = await anAccount(store);
    const change = (weight: number) => setAccount({ ...store, actor: operator }, caller.accountId, { weight });
    const tidy = async () => {
      const given = { store, objects, lifetimes: { job: day }, goOn, metrics: makeMetrics(), log: aLog().log };
      await archiveDays(given);
      await removeArchivedDays(store, objects, 90 * day, goOn, fail);
    };
    const weights = async (id: string, before?: string, limit = 100) => {
      const entries = await readAudit(store, id, { limit, before, open: (object) => readJsonLines(objects, object) });
      return entries.map(({ change, entry }) => ({ weight: change.weight, entry }));
    };
    for (const weight of [1, 2, 3]) await change(weight);
    store.advance(3 * day);
    await tidy();
    expect(await store.connection.send(['EXISTS', keys.audit(caller.accountId), keys.audit(wholeService)])).to.equal(0);
    for (const weight of [4, 5]) await change(weight);
    for (const id of [caller.accountId, wholeService]) {
      const all = await weights(id);
      expect(all.map(({ weight }) => weight)).to.deep.equal([5, 4, 3, 2, 1]);
      expect(await weights(id, undefined, 4)).to.deep.equal(all.slice(0, 4));
      expect(await weights(id, all[1]!.entry, 2)).to.deep.equal(all.slice(2, 4));
    }
    store.advance(360 * day);
    await tidy();
    expect(await weights(caller.accountId), 'almost a year later').to.have.length(5);
    store.advance(6 * day);
    await tidy();
    expect(await weights(caller.accountId), 'a year later').to.deep.equal([]);
    expect(await store.connection.send(['KEYS', '*audit*'])).to.deep.equal([]);
    remove();
  });
});

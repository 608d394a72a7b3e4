import type { ApiReply } from '../api/reply.ts';
import { isRefusal, refuse } from '../base/errors.ts';
import { isJsonObject } from '../base/parse-json.ts';
import { keyJson, type Quotas, type QuotaWindow, quotaWindows } from '../model/account.ts';
import { readExpiry, refusalOfExpiry } from '../model/api-key.ts';
import { type ReadInput, readAlias, readCategory, readWhole, readWholeOrNone } from '../model/operator-input.ts';
import { writeTime } from '../model/timestamp.ts';
import { changeKey, type RevocationObjects, revoke } from '../objects/revocations.ts';
import { createKey, newKey } from '../store/accounts/create-key.ts';
import { deleteKey } from '../store/accounts/delete-key.ts';
import { listUsedKeys } from '../store/accounts/read-key-usage.ts';
import { findKey } from '../store/accounts/read-keys.ts';
import { rotateKey } from '../store/accounts/rotate-key.ts';
import { type KeyChange, setKey } from '../store/accounts/set-key.ts';
import { changeRoute, type DashboardCall, type DashboardRoute, readRoute } from './dashboard-app.ts';
import { readBoolean, readGiven, requireKnown, requireRead } from './given-values.ts';

const hourMs = 3_600_000;
const defaultOverlapHours = 24;
const maxOverlapHours = 72;
/** Readers of the fields that people may change. */
const changeReaders = {
  category: readCategory,
  active: (value) => readBoolean(value, 'active'),
  expires: readEnd,
  quotas: readQuotas,
} satisfies Record<keyof KeyChange, (value: unknown) => ReadInput<unknown>>;
const changeable = Object.keys(changeReaders);
const hasHistory = 'The key has request history and cannot be deleted';

/** Routes about the API keys of an account. A secret is in one answer only: the one to its creation or rotation. */
export function keyRoutes(objects: RevocationObjects): DashboardRoute[] {
  return [
    readRoute('/api/keys', async ({ store, accountId }) => {
      const keys = await listUsedKeys(store, accountId);
      return { status: 200, body: { keys: keys.map(({ used, ...key }) => ({ ...keyJson(key), used })) } };
    }),
    changeRoute('POST', '/api/keys', 'keys', addKey),
    changeRoute('PATCH', '/api/keys/:alias', 'keys', (call) => change(objects, call)),
    changeRoute('DELETE', '/api/keys/:alias', 'keys', async (call) => {
      const alias = String(call.req.params.alias);
      const work = () => deleteKey(call.store, call.accountId, alias);
      await endKey(objects, call, alias, call.store.clock.now(), work).catch((error) => {
        throw isRefusal(error, 'key_has_history') ? refuse(error.code, hasHistory) : error;
      });
      return { status: 200, body: { deleted: true } };
    }),
    changeRoute('POST', '/api/keys/:alias/rotate', 'keys', (call) => rotate(objects, call)),
  ];
}

async function addKey({ store, accountId, given }: DashboardCall): Promise<ApiReply> {
  requireKnown(given, ['alias', ...changeable]);
  const alias = requireRead(readAlias(given.alias));
  const change = readChange(given);
  refuseExpired(change.expires, store.clock.now());
  const { key, id, hash } = newKey(accountId);
  await createKey(store, accountId, { id, alias, hash, ...change });
  return { status: 201, body: { id, alias, key } };
}

/** Carries out what ends a key at a moment, so that a restored backup knows of it. */
async function endKey<T>(
  objects: RevocationObjects,
  { store, accountId: account }: Pick<DashboardCall, 'store' | 'accountId'>,
  alias: string,
  ends: number,
  work: () => Promise<T>,
): Promise<T> {
  const { id: key } = await findKey(store, account, alias);
  return revoke(async () => objects, store.clock.now(), { kind: 'key', account, key, ends }, work);
}

async function change(objects: RevocationObjects, call: DashboardCall): Promise<ApiReply> {
  const { store, req, accountId: account, given } = call;
  requireKnown(given, changeable);
  const [alias, wanted] = [String(req.params.alias), readChange(given)];
  const { id: key } = await findKey(store, account, alias);
  const work = () => setKey(store, account, alias, wanted);
  const changed = await changeKey(async () => objects, store.clock.now(), { account, key }, wanted, work);
  return { status: 200, body: keyJson(changed) };
}

/** Makes a new secret; the old one goes on under another alias for some hours, or stops at once where the key has quotas. */
async function rotate(objects: RevocationObjects, call: DashboardCall): Promise<ApiReply> {
  const { store, req, accountId, given } = call;
  const alias = String(req.params.alias);
  requireKnown(given, ['overlap_hours']);
  const limits = { min: 0, max: maxOverlapHours, subject: 'overlap_hours' };
  const hours = readGiven(given, 'overlap_hours', (value) => readWhole(value, limits)) ?? defaultOverlapHours;
  const { key, id, hash } = newKey(accountId);
  const at = writeTime(store.clock.now()).slice(0, 19).replace('T', ' ');
  const oldAlias = `${[...alias].slice(0, 70).join('')} (rotated ${at})`;
  const made = { id, hash, oldAlias, overlapMs: hours * hourMs };
  const { quotas, expires } = await findKey(store, accountId, alias);
  refuseExpired(expires, store.clock.now());
  // The old secret of a key with quotas stops at once.
  const isLimited = Object.values(quotas).some((max) => max !== null);
  const until = store.clock.now() + (isLimited ? 0 : made.overlapMs);
  const ends = await endKey(objects, call, alias, until, () => rotateKey(store, accountId, alias, made));
  return { status: 200, body: { id, alias, key, old: { alias: oldAlias, works_until: writeTime(ends) } } };
}

/** Refuses to make a secret that would never work. */
function refuseExpired(expires: number | null | undefined, now: number): void {
  const refusal = refusalOfExpiry(expires, now);
  if (refusal !== null) throw refuse('bad_request', `Bad Request: ${refusal}`);
}

function readChange(given: DashboardCall['given']): KeyChange {
  const read = Object.entries<(value: unknown) => ReadInput<unknown>>(changeReaders);
  return Object.fromEntries(read.map(([name, reader]) => [name, readGiven(given, name, reader)])) as KeyChange;
}

function readEnd(value: unknown): ReadInput<number | null> {
  if (value === null || value === '') return { value: null };
  const time = readExpiry(value);
  if (time !== null) return { value: time };
  return { problem: 'expires must be a date (2026-03-04), a time with its zone (2026-03-04T12:00:00Z), or null' };
}

function readQuotas(value: unknown): ReadInput<Partial<Quotas>> {
  if (!isJsonObject(value)) {
    return { problem: `quotas must be an object of ${quotaWindows.join(', ')}` };
  }
  const quotas: Partial<Record<QuotaWindow, number | null>> = {};
  for (const [name, max] of Object.entries(value)) {
    const window = quotaWindows.find((one) => one === name);
    if (window === undefined) return { problem: `quotas knows ${quotaWindows.join(', ')}, not ${name.slice(0, 50)}` };
    // A blank field of the form is no cap, as a blank expiry is none.
    const read = readWholeOrNone(max === '' ? null : max, { subject: `quotas.${name}` });
    if (read.problem !== undefined) return read;
    quotas[window] = read.value;
  }
  return { value: quotas };
}

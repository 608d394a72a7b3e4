import { version } from '../base/version.ts';
import {
  goneMs,
  judgeLayout,
  type LayoutStep,
  type RecordLayout,
  type ReleaseLayouts,
  refuseRecord,
  type SeenRelease,
  unseenMs,
} from '../model/record-layout.ts';
import { keys } from './keys.ts';
import type { Connection } from './redis/connection.ts';
import { notedScript, pairs, type RecordStore, run, runNoted, script, text } from './script.ts';

/**
 * The layout that this release brings, and the oldest one that it reads: the one before, once a release with it was published.
 * Code that writes asks the store which of the two the record has.
 */
export const layouts: ReleaseLayouts = { release: version, own: 5, oldest: 5 };

/** Refusal of a record that a restore keeps closed. */
export const restoringSentence =
  'The record is being restored: wait for its end, or repeat a restore that was broken off';

const forgetMs = 24 * unseenMs;

/**
 * Notes that a process of a release uses the record, and gives an empty record its layout; a release that does not read the record
 * leaves no note. Answers {'noted' or 'refused', layout, least release, releases seen}, or {'restoring'}.
 */
const prepareSchemaScript = script(
  'prepare-schema',
  'light',
  ['schema', 'leastRelease', 'releases', 'restoring'],
  ['release', 'own', 'oldest', 'unseenMs', 'forgetMs'],
)`
if redis.call('EXISTS', restoring) == 1 then return { 'restoring' } end
local present = redis.call('GET', schema)
if not present then
  redis.call('SET', schema, own)
  redis.call('SET', leastRelease, release)
  present = own
end
local layout = tonumber(present)
local refused = not layout or layout > tonumber(own) or layout < tonumber(oldest)
local me = release .. ' ' .. own
local first = now
local seen = redis.call('HGETALL', releases)
for n = 1, #seen, 2 do
  local from, last = string.match(seen[n + 1], '^(%d+) (%d+)$')
  if seen[n] == me and now - last < tonumber(unseenMs) then first = math.min(now, tonumber(from))
  elseif now - last >= tonumber(forgetMs) then redis.call('HDEL', releases, seen[n]) end
end
if not refused then redis.call('HSET', releases, me, string.format('%d %d', first, now)) end
return { refused and 'refused' or 'noted', present, redis.call('GET', leastRelease) or '', redis.call('HGETALL', releases) }
`;

/**
 * Gives the record the next layout, unless an older release was seen within `quietMs`. Answers {'moved', layout} or {'seen'}.
 */
const moveLayoutScript = notedScript(
  'move-layout',
  'always',
  ['schema', 'leastRelease', 'releases'],
  ['from', 'own', 'release', 'quietMs'],
)`
local present = redis.call('GET', schema)
if present ~= from then return { 'moved', present } end
local seen = redis.call('HGETALL', releases)
for n = 1, #seen, 2 do
  local layout, last = string.match(seen[n], '(%d+)$'), string.match(seen[n + 1], '(%d+)$')
  if tonumber(layout) < tonumber(own) and now - last < tonumber(quietMs) then return { 'seen' } end
end
note_change()
-- First the release: one without its layout only says too much.
redis.call('SET', leastRelease, release)
redis.call('SET', schema, own)
return { 'moved', own }
`;

export interface RecordState extends RecordLayout {
  readonly seen: readonly SeenRelease[];
}

/** Notes the release of this process and gives an empty record its layout; throws a sentence when it does not read the record. */
export async function prepareSchema(store: RecordStore, mine: ReleaseLayouts = layouts): Promise<RecordState> {
  const { release, own, oldest } = mine;
  // The lease of the store is what this renews.
  const bare: RecordStore = { connection: store.connection, clock: store.clock };
  const [word, layout, leastRelease, seen] = await run(bare, prepareSchemaScript, {
    release,
    own,
    oldest,
    unseenMs,
    forgetMs,
  });
  if (word === 'restoring') {
    throw new Error(restoringSentence);
  }
  const state = stateOf(text(layout), text(leastRelease), pairs(seen));
  const refused = refuseRecord(state, mine);
  if (refused !== null) throw new Error(refused);
  if (word !== 'noted') throw new Error(`prepare-schema answered ${word}`);
  return state;
}

/** Gives the record the layout of this release if that may begin; `isAsked` when an operator seals it. Returns the state afterwards. */
export async function moveLayout(
  store: RecordStore,
  state: RecordState,
  isAsked: boolean,
  mine: ReleaseLayouts = layouts,
): Promise<LayoutStep> {
  const judged = judgeLayout(state, mine, state.seen, store.clock.now(), isAsked);
  if (judged.step !== 'move') return judged;
  const quietMs = isAsked ? goneMs : unseenMs;
  const note = { action: 'record.seal', target: '', change: { layout: mine.own } } as const;
  const values = { from: state.layout, own: mine.own, release: mine.release, quietMs };
  const [word] = await runNoted(store, moveLayoutScript, values, note);
  return word === 'moved' ? { step: 'sealed' } : moveLayout(store, await prepareSchema(store, mine), isAsked, mine);
}

/** Reads the layout of a record and who uses it, and changes nothing; `null` for an empty record. */
export async function readRecordState({
  connection,
}: {
  readonly connection: Connection;
}): Promise<RecordState | null> {
  const layout = await connection.read(['GET', keys.schema]);
  if (layout === null) return null;
  const [least, seen] = [
    await connection.read(['GET', keys.leastRelease]),
    await connection.read(['HGETALL', keys.releases]),
  ];
  return stateOf(layout, text(least), pairs(seen));
}

function stateOf(layout: string, leastRelease: string, releases: Readonly<Record<string, string>>): RecordState {
  const seen = Object.entries(releases).map(([name, times]) => {
    const [release = '', own] = name.split(' ');
    const [firstSeen, lastSeen] = times.split(' ').map(Number);
    return { release, layout: Number(own), firstSeen: firstSeen ?? 0, lastSeen: lastSeen ?? 0 };
  });
  return { layout: Number(layout), leastRelease, seen: seen.toSorted((a, b) => b.lastSeen - a.lastSeen) };
}

export function isReadableLayout(layout: number): boolean {
  return layout >= layouts.oldest && layout <= layouts.own;
}

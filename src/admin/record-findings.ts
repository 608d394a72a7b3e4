import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { gibibytes } from '../base/machine-memory.ts';
import { isInRange, readAddress, readRange } from '../model/public-address.ts';
import { type RecordLayout, refuseRecord } from '../model/record-layout.ts';
import { writeTime } from '../model/timestamp.ts';
import type { BackupNotes } from '../store/backup/backup-notes.ts';
import type { RestoreState } from '../store/backup/restore-lease.ts';
import { isLoginRefused, type TriedServer } from '../store/redis/new-connections.ts';
import { fullRatio, memoryRatio, type RecordMemory } from '../store/redis/redis-memory.ts';
import { maxClockDifferenceMs } from '../store/redis/redis-time.ts';
import { layouts, restoringSentence } from '../store/schema.ts';
import { type Finding, fine, judged, note, problem } from './doctor-finding.ts';

/** A day, and two hours for the backup of the next one; the alert TrawlBackupOld waits as long. */
const maxBackupAgeMs = 26 * 3_600_000;
/** Accounts that one finding names. */
const maxNamed = 5;
/** Clocks of two processes may differ by this. */
const maxAheadMs = 60_000;

/** Checks that the last private address which forwarded requests (`null` for none) is a trusted proxy (D38). */
export function checkStrayProxy(address: string | null, trusted: Config['trustedProxies']): Finding {
  const peer = readAddress(address ?? '');
  const isTrusted = (network: Config['trustedProxies'][number]) => peer !== null && isInRange(readRange(network), peer);
  const isKnown = address === null || trusted.some(isTrusted);
  const stray = `A proxy at ${address} forwards requests of others but is not in TRAWL_TRUSTED_PROXIES: name it there, because nobody behind it is ever blocked.`;
  return judged('proxies', isKnown, 'No proxy is unknown.', stray, 'note');
}

/** Checks that this release reads the layout of the record (`null` for an empty one), and that it is the own one. */
export function checkLayout(state: RecordLayout | null): Finding {
  const about = 'layout';
  if (state === null) return fine(about, 'The record is empty: it gets the layout of this release.');
  const refused = refuseRecord(state, layouts);
  if (refused !== null) return problem(about, `${refused}.`);
  const own = `The record has layout ${layouts.own}, as this release.`;
  const older = `The record still has layout ${state.layout}, which the release before reads, too: \`trawl admin record status\` says until when.`;
  return judged(about, state.layout === layouts.own, own, older, 'note');
}

/** Checks that no restore keeps the record closed. */
export function checkRestore(state: RestoreState): Finding {
  if (state === 'broken off') return problem('restore', `${restoringSentence}.`);
  const running = 'A restore runs: nothing else opens the record until it ends.';
  return judged('restore', state === 'none', 'No restore keeps the record closed.', running, 'note');
}

/** Checks that no drain lasts, which began then (`null` for none). */
export function checkDrain(since: number | null): Finding {
  const lasting = `Since ${writeTime(since)} a drain lasts: new jobs and calls get 503 until \`trawl admin drain off\`.`;
  return judged('drain', since === null, 'New jobs and calls are admitted: no drain lasts.', lasting, 'note');
}

/** Checks that the webhooks of every account can be signed; `unreadable` are slugs of those whose secret nothing opens. */
export function checkWebhookSecrets(unreadable: readonly string[]): Finding {
  const about = 'webhook secrets';
  const named = unreadable.slice(0, maxNamed).join(', ');
  const more = unreadable.length > maxNamed ? ` and ${unreadable.length - maxNamed} more` : '';
  const lost = `Webhooks of ${named}${more} fail, because TRAWL_SECRET was changed since their secret was made: name its value of then in TRAWL_SECRET_OLD and run \`trawl admin secret reseal\`, or have each account make a new one.`;
  return judged(
    about,
    unreadable.length === 0,
    'TRAWL_SECRET opens the webhook secret of every account.',
    lost,
    'note',
  );
}

/** Names plans and offers whose record is damaged; nothing where none is. */
export function checkDamage(damaged: readonly string[]): Finding[] {
  const effects =
    'A damaged plan limits no rate and keeps the quota that its accounts have booked; a damaged offer is not sold';
  const remedy = 'write each anew with `trawl admin plan set` or `offer set` and all of its options';
  return damaged.length === 0 ? [] : [problem('plans', `Damaged: ${damaged.join(', ')}. ${effects}: ${remedy}.`)];
}

/** Checks that the last complete backup is younger than 26 hours, and not of a time that is yet to come. */
export function checkBackup(notes: BackupNotes | null, now: number): Finding {
  const about = 'backup';
  const remedy = '`trawl admin record backup DIR` takes one while the service runs.';
  const missing = (verb: string) => note(about, `No backup of the record was ever ${verb}: ${remedy}`);
  if (notes === null || notes.firstBegun === null) return missing('begun');
  if (notes.lastTaken === null) return missing('completed');
  const taken = `The last complete backup of the record was taken at ${writeTime(notes.lastTaken)}`;
  const ahead = `${taken}, which is yet to come, because the clock of Redis was ahead: ${remedy}`;
  const old = `${taken}, more than 26 hours ago: ${remedy}`;
  if (notes.lastTaken - now > maxAheadMs) return note(about, ahead);
  return judged(about, now - notes.lastTaken <= maxBackupAgeMs, `${taken}.`, old, 'note');
}

/** Checks that the clock of this machine is at most 2 s from that of Redis, which decides. */
export function checkClockDifference(machineAheadMs: number): Finding {
  const apartMs = Math.abs(machineAheadMs);
  const text = `The clock of Redis is ${(apartMs / 1000).toFixed(1)} s from ours; up to ${maxClockDifferenceMs / 1000} s are well`;
  return judged('clock', apartMs <= maxClockDifferenceMs, `${text}.`, `${text}: keep both right with NTP.`);
}

/** Checks that the controller that leads does not say that its clock is off. */
export function checkLeaderClock(isOff: boolean): Finding {
  const off = `The clock of the leading controller is more than ${maxClockDifferenceMs / 1000} s from that of Redis: correct it.`;
  return judged('leader clock', !isOff, 'No leading controller has a clock that is off.', off, 'note');
}

/** Checks that Redis has a memory limit of its own and uses less than 85 % of it. */
export function checkMemory(memory: RecordMemory): Finding {
  const ratio = memoryRatio(memory);
  const { limitBytes, isOwnLimit } = memory;
  const used = `${Math.round(ratio * 100)} %`;
  if (isOwnLimit) {
    const text = `Redis uses ${used} of its memory; from ${fullRatio * 100} % on new jobs are refused`;
    return judged('memory', ratio < fullRatio, `${text}.`, `${text}: raise maxmemory, or lower TRAWL_JOB_DAYS.`);
  }
  const isKnown = limitBytes !== null;
  const gate = isKnown
    ? `New jobs are refused from ${fullRatio * 100} % of ${gibibytes(limitBytes)} on, of which it uses ${used}`
    : 'It hides how much it uses (INFO), so new jobs are never refused';
  const text = `Redis has no memory limit of its own: on a full machine the kernel ends it. ${gate}: set maxmemory in Redis.`;
  return problem('memory', text);
}

/** Judges the servers that may have to take the next connection; nothing of a single Redis, of which all other findings tell. */
export function checkServers(tried: readonly TriedServer[]): Finding[] {
  if (tried.length === 1 && tried[0]?.kind === 'Redis') return [];
  const about = 'servers';
  const failing = tried.filter(({ error }) => error !== null);
  if (failing.length === 0) {
    const names = tried.map(({ kind, address }) => `${kind} ${address}`).join(', ');
    return [fine(about, `New connections are taken by ${names}.`)];
  }
  return failing.map(({ kind, address, error }) => {
    const words = messageOf(error).replace(/\.$/, '');
    if (!isLoginRefused(error)) {
      const away = `${kind} ${address} takes no new connection (${words}): a takeover may not be followed while it is away.`;
      return note(about, away);
    }
    const text = `${kind} ${address} refuses user and password of TRAWL_REDIS_URL (${words}): give it the user of docs/operate.md, "Rights in Redis", before a connection breaks or Redis is taken over.`;
    return problem(about, text);
  });
}

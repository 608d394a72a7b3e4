import { BlockList, isIPv6 } from 'node:net';
import type { Config } from '../base/config.ts';
import { gibibytes } from '../base/machine-memory.ts';
import { type RecordLayout, refuseRecord } from '../model/record-layout.ts';
import { writeTime } from '../model/timestamp.ts';
import type { BackupNotes } from '../store/backup/backup-notes.ts';
import type { RestoreState } from '../store/backup/restore-lease.ts';
import { fullRatio, memoryRatio, type RecordMemory } from '../store/redis/redis-memory.ts';
import { maxClockDifferenceMs } from '../store/redis/redis-time.ts';
import { layouts, restoringSentence } from '../store/schema.ts';
import { type Finding, findingOf } from './doctor-finding.ts';

/** A day, and two hours for the backup of the next one; the alert TrawlBackupOld waits as long. */
const maxBackupAgeMs = 26 * 3_600_000;
/** Clocks of two processes may differ by this. */
const maxAheadMs = 60_000;

/** Checks that the last private address which forwarded requests (`null` for none) is a trusted proxy (D38). */
export function checkStrayProxy(address: string | null, trusted: Config['trustedProxies']): Finding {
  const about = 'proxies';
  if (address === null || isTrusted(address, trusted)) return { level: 'ok', about, text: 'No proxy is unknown.' };
  const text = `A proxy at ${address} forwards requests of others but is not in TRAWL_TRUSTED_PROXIES: nobody behind it is ever blocked.`;
  return { level: 'note', about, text };
}

/** Checks that this release reads the layout of the record (`null` for an empty one), and that it is the own one. */
export function checkLayout(state: RecordLayout | null): Finding {
  const about = 'layout';
  if (state === null) return { level: 'ok', about, text: 'The record is empty: it gets the layout of this release.' };
  const refused = refuseRecord(state, layouts);
  if (refused !== null) return { level: 'problem', about, text: `${refused}.` };
  if (state.layout === layouts.own)
    return { level: 'ok', about, text: `The record has layout ${layouts.own}, as this release.` };
  const text = `The record still has layout ${state.layout}, which the release before reads, too: \`trawl admin record status\` says until when.`;
  return { level: 'note', about, text };
}

/** Checks that no restore keeps the record closed. */
export function checkRestore(state: RestoreState): Finding {
  const about = 'restore';
  if (state === 'none') return { level: 'ok', about, text: 'No restore keeps the record closed.' };
  if (state === 'broken off') return { level: 'problem', about, text: `${restoringSentence}.` };
  return { level: 'note', about, text: 'A restore runs: nothing else opens the record until it ends.' };
}

/** Checks that no drain lasts, which began then (`null` for none). */
export function checkDrain(since: number | null): Finding {
  const about = 'drain';
  if (since === null) return { level: 'ok', about, text: 'New jobs and calls are admitted: no drain lasts.' };
  const text = `Since ${writeTime(since)} a drain lasts: new jobs and calls get 503 until \`trawl admin drain off\`.`;
  return { level: 'note', about, text };
}

/** Checks that the last complete backup is younger than 26 hours, and not of a time that is yet to come. */
export function checkBackup(notes: BackupNotes | null, now: number): Finding {
  const about = 'backup';
  const remedy = '`trawl admin record backup DIR` takes one while the service runs.';
  if (notes === null || notes.firstBegun === null)
    return { level: 'note', about, text: `No backup of the record was ever begun: ${remedy}` };
  if (notes.lastTaken === null)
    return { level: 'note', about, text: `No backup of the record was ever completed: ${remedy}` };
  const taken = `The last complete backup of the record was taken at ${writeTime(notes.lastTaken)}`;
  if (notes.lastTaken - now > maxAheadMs)
    return { level: 'note', about, text: `${taken}, which is yet to come: the clock of Redis was ahead.` };
  const text = `${taken}.`;
  return now - notes.lastTaken > maxBackupAgeMs ? { level: 'note', about, text } : { level: 'ok', about, text };
}

/** Checks that the clock of this machine is at most 2 s from that of Redis, which decides. */
export function checkClockDifference(machineAheadMs: number): Finding {
  const apartMs = Math.abs(machineAheadMs);
  const text = `The clock of Redis is ${(apartMs / 1000).toFixed(1)} s from ours; up to ${maxClockDifferenceMs / 1000} s are well.`;
  return findingOf(apartMs <= maxClockDifferenceMs, 'clock', text);
}

/** Checks that the controller that leads does not say that its clock is off. */
export function checkLeaderClock(isOff: boolean): Finding {
  const about = 'leader clock';
  if (!isOff) return { level: 'ok', about, text: 'No leading controller has a clock that is off.' };
  const text = `The clock of the leading controller is more than ${maxClockDifferenceMs / 1000} s from that of Redis: correct it.`;
  return { level: 'note', about, text };
}

/** Checks that Redis has a memory limit of its own and uses less than 85 % of it. */
export function checkMemory(memory: RecordMemory): Finding {
  const ratio = memoryRatio(memory);
  const { limitBytes, isOwnLimit } = memory;
  const used = `${Math.round(ratio * 100)} %`;
  if (isOwnLimit) {
    const text = `Redis uses ${used} of its memory; from ${fullRatio * 100} % on new jobs are refused.`;
    return findingOf(ratio < fullRatio, 'memory', text);
  }
  const isKnown = limitBytes !== null;
  const gate = isKnown
    ? `New jobs are refused from ${fullRatio * 100} % of ${gibibytes(limitBytes)} on, of which it uses ${used}`
    : 'It hides how much it uses (INFO), so new jobs are never refused';
  const text = `Redis has no memory limit of its own: on a full machine the kernel ends it. ${gate}: set maxmemory in Redis.`;
  return { level: 'problem', about: 'memory', text };
}

function isTrusted(proxy: string, trusted: Config['trustedProxies']): boolean {
  const list = new BlockList();
  for (const { address, prefix, family } of trusted) list.addSubnet(address, prefix, family);
  return list.check(proxy, isIPv6(proxy) ? 'ipv6' : 'ipv4');
}

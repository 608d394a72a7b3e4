/** Layouts of the record that a release knows: it brings `own`, and reads every one from `oldest` on. */
export interface ReleaseLayouts {
  readonly release: string;
  readonly own: number;
  readonly oldest: number;
}

/** Layout of a record, NaN where a text is in its place, and the least release that reads it ('' where none is noted). */
export interface RecordLayout {
  readonly layout: number;
  readonly leastRelease: string;
}

/** A release whose processes used the record; times are milliseconds. */
export interface SeenRelease {
  readonly release: string;
  readonly layout: number;
  readonly firstSeen: number;
  readonly lastSeen: number;
}

export const noteEveryMs = 10_000;
/** A process that has not noted its release for this time changes nothing before it has done so again. */
export const leaseMs = 20_000;
/** A release that was not noted for this time has no process that may still change the record: a lease, and the longest wait of a command. */
export const goneMs = 60_000;
/** An older release that was not seen for this time is not rolled back to by itself any more. */
export const unseenMs = 3_600_000;

/** Returns why a release may not use a record, and what to do, in one sentence; `null` when it may. */
export function refuseRecord({ layout, leastRelease }: RecordLayout, { release, own, oldest }: ReleaseLayouts) {
  if (Number.isNaN(layout)) {
    return `The layout of the record is no number (key {trawl}:schema): write the layout of the release that used it last there (${own} for trawl ${release}), or restore a backup`;
  }
  if (layout > own) {
    const least = leastRelease === '' ? 'a newer release' : `trawl ${leastRelease} or newer`;
    return `The record has layout ${layout}, which ${least} reads, and this is trawl ${release} (layout ${own}): start the newer release again, or restore a backup that was taken before`;
  }
  if (layout < oldest) {
    return `The record has layout ${layout}, and trawl ${release} reads none before ${oldest}: first run the releases in between, each until \`trawl admin record seal\` has done its work, or begin with an empty Redis`;
  }
  return null;
}

/** Distance of a record from the layout of a release that reads it. */
export type LayoutStep =
  /** The record has the layout of the release. */
  | { readonly step: 'sealed' }
  /** Its layout may change now: no older release may come back unasked. */
  | { readonly step: 'move' }
  /** An older release runs, or ran until now. */
  | { readonly step: 'running'; readonly releases: readonly string[]; readonly at: number }
  /** No older release runs, but until `at` one may be rolled back to. */
  | { readonly step: 'waiting'; readonly at: number };

/**
 * Judges whether the layout of a release may begin. By itself it does an hour after the last sign of an older release and the first
 * one of this layout; when an operator seals the record, as soon as no older release runs.
 */
export function judgeLayout(
  { layout }: Pick<RecordLayout, 'layout'>,
  { own }: Pick<ReleaseLayouts, 'own'>,
  seen: readonly SeenRelease[],
  now: number,
  isAsked: boolean,
): LayoutStep {
  if (layout >= own) return { step: 'sealed' };
  const older = seen.filter((one) => one.layout < own);
  const lastOlder = Math.max(...older.map(({ lastSeen }) => lastSeen), Number.NEGATIVE_INFINITY);
  const begun = Math.min(...seen.filter((one) => one.layout >= own).map(({ firstSeen }) => firstSeen), now);
  const at = Math.max(lastOlder, begun) + unseenMs;
  const running = older.filter(({ lastSeen }) => now - lastSeen < goneMs).map(({ release }) => release);
  if (running.length > 0) return { step: 'running', releases: running, at };
  return isAsked || now >= at ? { step: 'move' } : { step: 'waiting', at };
}

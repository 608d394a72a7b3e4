import { refuse } from '../base/errors.ts';
import { judgeLayout, type LayoutStep } from '../model/record-layout.ts';
import { writeTime } from '../model/timestamp.ts';
import { layouts, moveLayout, prepareSchema, type RecordState } from '../store/schema.ts';
import { type CommandResult, command } from './command.ts';
import { tableText, timeText } from './text-table.ts';

const json = '{release, layout, own_layout, least_release, sealed, seals_at, releases}';

export const layoutCommands = {
  'record status': command({
    text: 'Shows the layout of the record, which releases use it, and when older ones can no longer read it.',
    json,
    run: async (_, { store }) => {
      const state = await prepareSchema(store);
      return shownState(state, judgeLayout(state, layouts, state.seen, store.clock.now(), false));
    },
  }),
  'record seal': command({
    text: 'Begins the layout of this release at once, unless an older one still runs: a rollback is impossible from then on.',
    json,
    run: async (_, { store }) => {
      const step = await moveLayout(store, await prepareSchema(store), true);
      if (step.step === 'running') {
        const text = `An older release runs or ran within the last minute: ${step.releases.join(', ')}. Stop its processes, then repeat this`;
        throw refuse('in_use', text);
      }
      return shownState(await prepareSchema(store), step);
    },
  }),
};

function shownState({ layout, leastRelease, seen }: RecordState, step: LayoutStep): CommandResult {
  const sealsAt = 'at' in step ? step.at : null;
  const value = {
    ...{ release: layouts.release, layout, own_layout: layouts.own, least_release: leastRelease || null },
    sealed: layout >= layouts.own,
    seals_at: writeTime(sealsAt),
    releases: seen.map(({ release, layout, firstSeen, lastSeen }) => ({
      ...{ release, layout },
      first_seen: writeTime(firstSeen),
      last_seen: writeTime(lastSeen),
    })),
  };
  const rows = seen.map(({ release, layout, firstSeen, lastSeen }) => ({
    ...{ release, layout },
    'first seen (UTC)': timeText(firstSeen),
    'last seen (UTC)': timeText(lastSeen),
  }));
  const next =
    sealsAt === null
      ? `No release before ${leastRelease || 'the one that wrote it'} reads it.`
      : `The release before reads it, too, until layout ${layouts.own} begins: with \`trawl admin record seal\`, or at ${timeText(sealsAt)} UTC unless an older release is seen until then.`;
  const text = `The record has layout ${layout}. ${next}\n\n${tableText(rows, 'No release was seen.')}`;
  return { value, text };
}

import type { Mutant } from './mutant.ts';

const test = 'test/controller/days.test.ts';
const rows = ['D24'];

/** One broken line each of what moves ended days, and the test that must see it. */
export const daysMutants: readonly Mutant[] = [
  {
    ...{ rows, file: 'src/controller/days.ts', test: 'test/controller/days-left.test.ts' },
    from: 'await objects.see(objectOf(origin, beginning));',
    to: '',
    grep: 'ended days that cannot be moved now are all left when the object store is away',
  },
  {
    ...{ rows, file: 'src/controller/days.ts', test: 'test/controller/days-left.test.ts' },
    from: 'while (goOn()) {',
    to: 'while (true) {',
    grep: 'ended days that cannot be moved now are left after the step',
  },
  {
    ...{ rows: [], file: 'src/store/lua/finish.ts', test: 'test/controller/sweep.test.ts' },
    from: "j.attempt == '0' or mayUpload == ''",
    to: 'not is_delivered',
    grep: 'a sweep removes what a cancelled job had uploaded',
  },
  {
    ...{ rows: [], file: 'src/controller/sweep.ts', test: 'test/controller/sweep.test.ts' },
    from: 'isClosing || !isLeading()',
    to: '!isLeading()',
    grep: 'a sweep is left after the file',
  },
  {
    ...{ rows, test, file: 'src/controller/days.ts' },
    from: 'const newest = kept?.at(-1);',
    to: 'const newest = oldest.at(-1);',
    grep: 'ended days go to the object store',
  },
  {
    ...{ rows, test, file: 'src/controller/days.ts' },
    from: 'kept.some(({ entry }, n) => entry !== old[n]?.entry)',
    to: 'false',
    grep: 'ended days stay in the record when',
  },
  {
    ...{ rows, test, file: 'src/controller/days.ts' },
    from: 'return problems.length > 0 ? null :',
    to: 'return',
    grep: 'ended days of a ledger with a problem',
  },
  {
    ...{ rows, test, file: 'src/controller/days.ts' },
    from: 'dayOf(Math.min(period, now - lifetimes.job))',
    to: 'dayOf(period)',
    grep: 'ended days leave the money of every job',
  },
  {
    ...{ rows, test, file: 'src/store/scripts/move-days.ts' },
    from: '~= from then',
    to: "== 'x' then",
    grep: 'ended days are moved once by two at once',
  },
  {
    ...{ rows, test, file: 'src/store/scripts/move-days.ts' },
    from: "redis.call('XTRIM', stream, 'MINID', after)",
    to: '',
    grep: 'ended days go to the object store',
  },
  {
    ...{ rows, test, file: 'src/store/scripts/drop-days.ts' },
    from: "redis.call('LREM', list, 1, json)",
    to: '',
    grep: 'ended days are removed when their time is over',
  },
  {
    ...{ rows, test, file: 'src/store/ledger.ts' },
    from: 'beginReplay(open ? undefined : openingOf(seen.moved?.closing))',
    to: 'beginReplay()',
    grep: 'ended days go to the object store',
  },
];

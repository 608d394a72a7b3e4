import { refuse } from '../base/errors.ts';
import { readAlias } from '../model/operator-input.ts';
import { writeTime } from '../model/timestamp.ts';
import { findAccount } from '../store/accounts/read-accounts.ts';
import { listKeys } from '../store/accounts/read-keys.ts';
import { readLines } from '../store/log/read-lines.ts';
import { command } from './command.ts';
import { slug, wholeNumber } from './command-values.ts';
import { listResult, timeText } from './text-table.ts';

export const logCommands = {
  'log show': command({
    text: 'Shows the request log of an account, newest line first, archived days included.',
    json: '[{at, endpoint, status, duration_ms, ip, credits, key}]',
    operands: { SLUG: slug },
    options: {
      key: { value: 'ALIAS', read: readAlias, text: 'Only requests with this key.' },
      limit: { value: 'N', read: wholeNumber(1, 10_000), text: 'Most lines; 100 unless given.' },
    },
    run: async (given, { store, readArchivedPart }) => {
      const account = await findAccount(store, given.SLUG);
      const { key, limit = 100 } = given;
      if (key !== undefined && !(await listKeys(store, account)).some(({ alias }) => alias === key)) {
        throw refuse('not_found', `The account has no key ${key}`);
      }
      const lines = await readLines(store, account, limit, { alias: key, open: readArchivedPart });
      return listResult(
        lines,
        (line) => ({ ...line, at: writeTime(line.at) }),
        ({ at, endpoint, status, duration_ms, credits, key, ip }) => {
          return { 'at (UTC)': timeText(at), endpoint, status, ms: Math.round(duration_ms), credits, key, ip };
        },
        'The log has no lines.',
      );
    },
  }),
};

import { refuse } from '../base/errors.ts';
import { readAlias } from '../model/operator-input.ts';
import { writeTime } from '../model/timestamp.ts';
import { clearBlock } from '../store/access/clear-block.ts';
import { listBlocks } from '../store/access/list-blocks.ts';
import { findAccount } from '../store/accounts/read-accounts.ts';
import { listKeys } from '../store/accounts/read-keys.ts';
import { readLines } from '../store/log/read-lines.ts';
import { command } from './command.ts';
import { address, slug, whole } from './judge.ts';
import { tableText, timeText } from './table.ts';

export const logCommands = [
  command({
    group: 'log',
    verb: 'show',
    text: 'Shows the request log of an account, newest first, also of days that were moved to the object store.',
    json: '[{at, endpoint, status, duration_ms, ip, credits, key}]',
    operands: { SLUG: slug },
    options: {
      key: { value: 'ALIAS', read: readAlias, text: 'Only requests with this key.' },
      limit: { value: 'N', read: whole(1, 10_000), text: 'How many lines; 100 unless given.' },
    },
    run: async (given, { store, openDays }) => {
      const account = await findAccount(store, given.SLUG);
      const { key, limit = 100 } = given;
      if (key !== undefined && !(await listKeys(store, account)).some(({ alias }) => alias === key)) {
        throw refuse('not_found', `The account has no key ${key}`);
      }
      const lines = await readLines(store, account, limit, { alias: key, open: openDays });
      return {
        value: lines.map((line) => ({ ...line, at: writeTime(line.at) })),
        text: tableText(
          lines,
          {
            'at (UTC)': ({ at }) => timeText(at),
            endpoint: ({ endpoint }) => endpoint,
            status: ({ status }) => status,
            ms: ({ duration_ms }) => Math.round(duration_ms),
            credits: ({ credits }) => credits,
            key: ({ key }) => key,
            ip: ({ ip }) => ip,
          },
          'The log has no lines.',
        ),
      };
    },
  }),
];

export const blockCommands = [
  command({
    group: 'block',
    verb: 'list',
    text: 'Lists the addresses that are blocked after too many failed authentications.',
    json: '[{ip, until}]',
    operands: {},
    options: {},
    run: async (_, { store }) => {
      const blocks = await listBlocks(store);
      return {
        value: blocks.map(({ address, until }) => ({ ip: address, until: writeTime(until) })),
        text: tableText(
          blocks,
          { ip: ({ address }) => address, 'until (UTC)': ({ until }) => timeText(until) },
          'No address is blocked.',
        ),
      };
    },
  }),
  command({
    group: 'block',
    verb: 'clear',
    text: 'Ends the block of an address and forgets its failures.',
    json: '{cleared}',
    operands: { IP: { read: address, text: 'The address, as block list shows it.' } },
    options: {},
    run: async (given, { store }) => {
      if (!(await clearBlock(store, given.IP))) {
        throw refuse('not_found', `The address ${given.IP} is not blocked and has no failures`);
      }
      return { value: { cleared: given.IP }, text: `The block of ${given.IP} is ended.\n` };
    },
  }),
];

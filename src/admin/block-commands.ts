import { refuse } from '../base/errors.ts';
import { writeTime } from '../model/timestamp.ts';
import { clearBlock } from '../store/access/clear-block.ts';
import { listBlocks } from '../store/access/list-blocks.ts';
import { command } from './command.ts';
import { blockedAddress } from './command-values.ts';
import { listResult, timeText } from './text-table.ts';

export const blockCommands = {
  'block list': command({
    text: 'Lists the addresses that are blocked after too many failed authentications.',
    json: '[{ip, until}]',
    run: async (_, { store }) => {
      return listResult(
        await listBlocks(store),
        ({ address, until }) => ({ ip: address, until: writeTime(until) }),
        ({ address, until }) => ({ ip: address, 'until (UTC)': timeText(until) }),
        'No address is blocked.',
      );
    },
  }),
  'block clear': command({
    text: 'Ends the block of an address and forgets its failed authentications.',
    json: '{cleared}',
    operands: {
      IP: { read: blockedAddress, text: 'The address; of IPv6 its whole /64 is blocked, as block list shows it.' },
    },
    run: async (given, { store }) => {
      if (!(await clearBlock(store, given.IP))) {
        throw refuse('not_found', `The address ${given.IP} is not blocked and has no failures`);
      }
      return { value: { cleared: given.IP }, text: `The block of ${given.IP} is ended.\n` };
    },
  }),
};

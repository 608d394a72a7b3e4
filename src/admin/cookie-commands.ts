import { refuse } from '../base/errors.ts';
import { writeTime } from '../model/timestamp.ts';
import { readCookieFolder } from './check-cookies.ts';
import { command } from './command.ts';
import { listResult, timeText } from './text-table.ts';

export const cookieCommands = {
  'cookies check': command({
    text: 'Lists the files of TRAWL_COOKIES: when the last cookie of each expires, and whether the file is good, expired, or faulty, which trawl doctor explains.',
    json: '[{site, file, expires_at, state}]',
    run: async (_, { store, config }) => {
      const now = store.clock.now();
      const stateOf = ({ fault, expiresAt }: { readonly fault: string | null; readonly expiresAt: number | null }) => {
        if (fault !== null) return 'faulty';
        return expiresAt !== null && expiresAt <= now ? 'expired' : 'good';
      };
      return listResult(
        await readFolder(config.cookies),
        (one) => ({ site: one.site, file: one.name, expires_at: writeTime(one.expiresAt), state: stateOf(one) }),
        (one) => ({ site: one.site, file: one.name, 'expires (UTC)': timeText(one.expiresAt), state: stateOf(one) }),
        'There is no cookie file.',
      );
    },
  }),
};

async function readFolder(folder: string | null) {
  if (folder === null) return [];
  return readCookieFolder(folder).catch((error: Error) => {
    throw refuse('not_found', `The folder of TRAWL_COOKIES cannot be read: ${error.message}`);
  });
}

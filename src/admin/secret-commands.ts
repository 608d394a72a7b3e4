import { listAccounts } from '../store/accounts/read-accounts.ts';
import { resealWebhookSecret } from '../store/accounts/reseal-webhook-secret.ts';
import { noteOperation } from '../store/note-operation.ts';
import { command } from './command.ts';

export const secretCommands = {
  'secret reseal': command({
    text: 'Seals the webhook secrets of all accounts with the current TRAWL_SECRET, before TRAWL_SECRET_OLD is removed.',
    json: '{accounts, unreadable}',
    run: async (_, { store, seal, progress }) => {
      await noteOperation(store, '', { action: 'secret.reseal', target: '' });
      const accounts = await listAccounts(store);
      const current = await seal();
      const unreadable: string[] = [];
      for (const [n, [slug, id]] of accounts.entries()) {
        progress(`${n} of ${accounts.length} accounts`);
        if (!(await resealWebhookSecret(store, id, current))) unreadable.push(slug);
      }
      const lost = 'Neither TRAWL_SECRET nor TRAWL_SECRET_OLD opens the webhook secrets of these accounts';
      const text = unreadable.length === 0 ? '' : `${lost}: ${unreadable.join(', ')}\n`;
      return {
        value: { accounts: accounts.length, unreadable },
        text: `${accounts.length} accounts were looked at.\n${text}`,
        failed: unreadable.length > 0,
      };
    },
  }),
};

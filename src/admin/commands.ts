import { accountCommands } from './account-commands.ts';
import { auditCommands } from './audit-commands.ts';
import { blockCommands } from './block-commands.ts';
import type { AdminCommand, CommandRow } from './command.ts';
import { cookieCommands } from './cookie-commands.ts';
import { creditCommands } from './credit-commands.ts';
import { drainCommands } from './drain-commands.ts';
import { jobCommands } from './job-commands.ts';
import { keyCommands } from './key-commands.ts';
import { layoutCommands } from './layout-commands.ts';
import { ledgerCommands } from './ledger-commands.ts';
import { logCommands } from './log-commands.ts';
import { planCommands } from './plan-commands.ts';
import { recordCommands } from './record-commands.ts';
import { secretCommands } from './secret-commands.ts';
import { offerCommands, topupCommands } from './topup-commands.ts';
import { userCommands } from './user-commands.ts';
import { webhookCommands } from './webhook-commands.ts';

const rows: Readonly<Record<string, CommandRow>> = {
  ...planCommands,
  ...accountCommands,
  ...keyCommands,
  ...userCommands,
  ...creditCommands,
  ...topupCommands,
  ...offerCommands,
  ...ledgerCommands,
  ...logCommands,
  ...jobCommands,
  ...webhookCommands,
  ...blockCommands,
  ...cookieCommands,
  ...drainCommands,
  ...secretCommands,
  ...auditCommands,
  ...recordCommands,
  ...layoutCommands,
};

/** Every command of the operator, in the order in which help and documents show them. */
export const commands: readonly AdminCommand[] = Object.entries(rows).map(([name, row]) => {
  const [group = '', verb = ''] = name.split(' ');
  return { name, group, verb, ...row };
});

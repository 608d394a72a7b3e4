import { accountCommands } from './account.ts';
import type { Command } from './command.ts';
import { jobCommands } from './job.ts';
import { keyCommands } from './key.ts';
import { ledgerCommands } from './ledger.ts';
import { moneyCommands } from './money.ts';
import { planCommands } from './plan.ts';
import { blockCommands, logCommands } from './record.ts';
import { webhookCommands } from './webhook.ts';

/** Every command of the operator, in the order in which help and documents show them. */
export const commands: readonly Command[] = [
  ...planCommands,
  ...accountCommands,
  ...keyCommands,
  ...moneyCommands,
  ...ledgerCommands,
  ...logCommands,
  ...jobCommands,
  ...webhookCommands,
  ...blockCommands,
];

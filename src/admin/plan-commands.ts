import { UsageError } from '../base/command-line.ts';
import type { Plan } from '../model/account.ts';
import { readPlanName } from '../model/operator-input.ts';
import { listPlans, parsePlan, readPlanText } from '../store/accounts/read-plans.ts';
import { removePlan } from '../store/accounts/remove-plan.ts';
import { setPlan } from '../store/accounts/set-plan.ts';
import { command } from './command.ts';
import { wholeNumber, wholeNumberOrNone, yesOrNo } from './command-values.ts';
import { fieldText, listResult } from './text-table.ts';

const name = { read: readPlanName, text: 'Name of the plan.' } as const;

const changeable = ['quota', 'per-second', 'per-minute', 'paid'] as const;

export const planCommands = {
  'plan set': command({
    text: 'Creates a plan, or changes it for every account that has it; an option that is not given keeps its value.',
    json: '{name, quota, per_second, per_minute, paid}',
    operands: { NAME: name },
    options: {
      quota: { value: 'N', read: wholeNumber(0), text: 'Credits of each billing period; required for a new plan.' },
      'per-second': {
        value: 'N|none',
        read: wholeNumberOrNone(1),
        text: 'Most requests of an account in one second; no limit for a new plan.',
      },
      'per-minute': {
        value: 'N|none',
        read: wholeNumberOrNone(1),
        text: 'Most requests of an account in one minute; no limit for a new plan.',
      },
      paid: { value: 'yes|no', read: yesOrNo, text: 'Paid plans may have an automatic top-up; no for a new plan.' },
    },
    run: async (given, { store }) => {
      for (;;) {
        const text = await readPlanText(store, given.NAME);
        const before = text === null ? null : parsePlan(text);
        if (text !== null && before === null) {
          // A paid plan would become another one unsaid, and its top-ups would stop.
          const missing = changeable.filter((option) => given[option] === undefined).map((option) => `--${option}`);
          if (missing.length > 0)
            throw new UsageError(
              `${missing.join(', ')} must be given: the record of the plan ${given.NAME} is damaged`,
            );
        }
        const quota = given.quota ?? before?.quota;
        if (quota === undefined) throw new UsageError(`--quota is missing: there is no plan ${given.NAME} yet`);
        const { 'per-second': perSecond = before?.per_second, 'per-minute': perMinute = before?.per_minute } = given;
        const plan: Plan = {
          name: given.NAME,
          quota,
          per_second: perSecond ?? null,
          per_minute: perMinute ?? null,
          paid: given.paid ?? before?.paid ?? false,
        };
        // Another operator may change other fields of it at the same time.
        if (await setPlan(store, plan, text)) return { value: plan, text: fieldText({ ...plan }) };
      }
    },
  }),
  'plan list': command({
    text: 'Lists all plans.',
    json: '[{name, quota, per_second, per_minute, paid}]',
    run: async (_, { store }) => {
      const rowOf = ({ per_second, per_minute, paid, ...plan }: Plan) => {
        return { ...plan, 'per second': per_second, 'per minute': per_minute, paid };
      };
      return listResult(await listPlans(store), (plan) => plan, rowOf, 'There are no plans.');
    },
  }),
  'plan remove': command({
    text: 'Removes a plan that no account has.',
    json: '{removed}',
    operands: { NAME: name },
    run: async (given, { store }) => {
      await removePlan(store, given.NAME);
      return { value: { removed: given.NAME }, text: `The plan ${given.NAME} is removed.\n` };
    },
  }),
};

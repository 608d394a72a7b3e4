import { expect } from 'chai';
import { helpOf, partsOf } from '../../src/admin/command-help.ts';
import { commands } from '../../src/admin/commands.ts';
import { parseCommandLine, wantsJson } from '../../src/admin/parse-command-line.ts';
import { UsageError } from '../../src/base/command-line.ts';

function read(line: string) {
  return parseCommandLine(line === '' ? [] : line.split(' '), commands);
}

function given(line: string): Readonly<Record<string, unknown>> {
  const asked = read(line);
  if (asked.help !== undefined) throw new Error('it is help');
  return asked.given;
}

function problemOf(line: string): UsageError {
  try {
    read(line);
  } catch (error) {
    if (error instanceof UsageError) return error;
    throw error;
  }
  throw new Error(`${line} is understood`);
}

describe('a command line of admin', () => {
  for (const [line, seen] of [
    ['plan set p --quota 5', { NAME: 'p', quota: 5 }],
    ['plan --json set --quota=5 p', { NAME: 'p', quota: 5 }],
    ['--json plan set p --per-second none --per-minute 9', { NAME: 'p', 'per-second': null, 'per-minute': 9 }],
    ['plan set p --paid yes --json', { NAME: 'p', paid: true }],
    ['account create a --name=-x- --stats off', { SLUG: 'a', name: '-x-', stats: false }],
    ['account set a --plan none --invoice unpaid', { SLUG: 'a', plan: null, invoice: 'unpaid' }],
    ['account set a --webhook-secret new --suspended no', { SLUG: 'a', 'webhook-secret': 'new', suspended: false }],
    ['account set a --webhook-secret none', { SLUG: 'a', 'webhook-secret': null }],
    ['key create a --alias k --expires 2032-02-29', { SLUG: 'a', alias: 'k', expires: Date.UTC(2032, 2, 1) - 1 }],
    ['key set a k --expires never --category ', { SLUG: 'a', ALIAS: 'k', expires: null, category: '' }],
    [
      'key set a k --quota-daily none --quota-total 0',
      { SLUG: 'a', ALIAS: 'k', 'quota-daily': null, 'quota-total': 0 },
    ],
    ['credits add a 7 --reason thanks', { SLUG: 'a', N: 7, reason: 'thanks' }],
    ['ledger verify', {}],
    ['ledger verify a', { SLUG: 'a' }],
    ['block clear 2001:db8::/64', { IP: '2001:db8:0:0::/64' }],
    ['webhook list a --failed --limit 5', { SLUG: 'a', failed: true, limit: 5 }],
    ['webhook list --failed a', { SLUG: 'a', failed: true }],
    ['webhook list a', { SLUG: 'a' }],
    ['job show 2A1B0000-0000-4000-8000-00000000000A', { ID: '2a1b0000-0000-4000-8000-00000000000a' }],
    ['key delete a -- -odd', { SLUG: 'a', ALIAS: '-odd' }],
    ['user create --operator --email e@example.com', { operator: true, email: 'e@example.com' }],
    ['user create --email e@example.com --operator', { operator: true, email: 'e@example.com' }],
    ['user --operator create --email e@example.com --json', { operator: true, email: 'e@example.com' }],
    ['--operator user --json create --email e@example.com', { operator: true, email: 'e@example.com' }],
    ['--email e@example.com --operator user create', { operator: true, email: 'e@example.com' }],
    ['user remove --operator e@example.com', { operator: 'e@example.com' }],
    ['user --operator e@example.com remove', { operator: 'e@example.com' }],
    ['--json --operator e@example.com user remove', { operator: 'e@example.com' }],
  ] as const) {
    it(`is read: ${line}`, () => {
      expect(given(line)).to.deep.equal(seen);
    });
  }

  for (const [line, sentence, usage] of [
    ['', /^A group is missing: plan, account, key, .*block, .*audit, .*record$/, /GROUP VERB/],
    ['nonsense', /^There is no group nonsense: there are plan/, /GROUP VERB/],
    ['nonsense --help', /^There is no group nonsense/, /GROUP VERB/],
    ['plan', /^A verb is missing behind plan$/, /plan set\|list\|remove/],
    ['plan nonsense', /^There is no command plan nonsense$/, /plan set\|list\|remove/],
    ['plan set', /^NAME is missing$/, /plan set NAME \[options\]$/],
    ['plan set p --quota', /^--quota needs a value$/, /plan set NAME/],
    ['plan set p --quota -1', /^--quota needs a value; .* is written --quota=-1$/, /plan set NAME/],
    ['plan set p --quota=-1', /^--quota must be a whole number from 0 to/, /plan set NAME/],
    ['plan set p --quota x', /^--quota must be a whole number/, /plan set NAME/],
    ['plan set p --quota 1.5', /^--quota must be a whole number/, /plan set NAME/],
    ['plan set p --quota 99999999999999999999', /^--quota must be a whole number/, /plan set NAME/],
    ['plan set p --quota 5 --per-second 0.5', /^--per-second must be .*, or none$/, /plan set NAME/],
    ['plan set p --quota 5 --paid maybe', /^--paid must be yes or no/, /plan set NAME/],
    ['plan set p --quota 5 --quota 6', /^--quota is there twice$/, /plan set NAME/],
    ['plan set p q --quota 5', /^There is one word too many: q$/, /plan set NAME/],
    ['plan set none --quota 5', /^A plan cannot be called none$/, /plan set NAME/],
    ['plan set p --alias k', /^There is no option --alias here$/, /plan set NAME/],
    ['plan set p --toString k', /^There is no option --toString here$/, /plan set NAME/],
    ['plan list --json=yes', /^--json takes no value$/, /plan list$/],
    ['--alias k plan list', /^There is no option --alias here$/, /plan list$/],
    ['user create --operator=yes --email e@example.com', /^--operator takes no value$/, /user create/],
    ['user remove --operator', /^--operator needs a value$/, /user remove/],
    ['plan list -5', /^There is no option -5 here$/, /plan list$/],
    ['account create x', /^--name is missing$/, /account create SLUG --name NAME \[options\]$/],
    ['account create X --name n', /^A slug has/, /account create/],
    ['account set a --webhook-secret old', /^--webhook-secret must be new, or none$/, /account set/],
    ['account set a --invoice late', /^--invoice must be paid or unpaid$/, /account set/],
    ['account set a --weight 0', /^--weight must be a whole number from 1/, /account set/],
    ['account list --nonsense', /^There is no option --nonsense here$/, /account list$/],
    ['key create a', /^--alias is missing$/, /key create SLUG --alias A/],
    ['key create a --alias --json', /^--alias needs a value/, /key create/],
    ['key create a --alias k --expires 2031-02-30', /^--expires must be a date/, /key create/],
    ['key set a k --expires soon', /^--expires must be a date .*, or never$/, /key set SLUG ALIAS/],
    ['pack add a --title t', /^--total is missing$/, /pack add SLUG --title T --total N/],
    ['pack add a --title t --total 0', /^--total must be a whole number from 1/, /pack add/],
    ['credits add a', /^N is missing$/, /credits add SLUG N/],
    ['credits add a -5', /^There is no option -5 here$/, /credits add SLUG N/],
    ['ledger show a --limit 10001', /^--limit must be a whole number from 1 to 10000$/, /ledger show/],
    ['webhook list a --failed=yes', /^--failed takes no value$/, /webhook list SLUG \[options\]$/],
    ['webhook list a --failed --failed', /^--failed is there twice$/, /webhook list/],
    ['job list --failed', /^There is no command job list$/, /job show\|explain\|cancel/],
    ['job show 5', /^ID must be the id of a job$/, /job show ID$/],
    ['block clear somewhere', /^IP must be an IP address/, /block clear IP/],
    ['block clear 10.0.0.0/999', /^IP must be an IP address/, /block clear IP/],
  ] as const) {
    it(`is refused with a sentence and its usage: ${line || '(empty)'}`, () => {
      const problem = problemOf(line);
      expect(problem.message).to.match(sentence);
      expect(problem.usage)
        .to.match(/^trawl admin /)
        .and.match(usage);
    });
  }

  it('asks for JSON by --json anywhere before --', () => {
    expect(['--json', 'a --json', 'a b', 'a -- --json'].map((line) => wantsJson(line.split(' ')))).to.deep.equal([
      true,
      true,
      false,
      false,
    ]);
  });
});

describe('the help of admin', () => {
  it('lists every command with its sentence, or those of one group', () => {
    const { help } = read('--help');
    for (const command of commands) expect(help).to.match(new RegExp(`${command.name} +${command.text}`));
    expect(read('key -h').help).to.contain('key create').and.not.contain('plan set');
  });

  for (const command of commands) {
    it(`shows every argument and option of ${command.name}`, () => {
      const { help } = read(`${command.name} --help --nonsense`);
      expect(help).to.equal(helpOf(command));
      for (const [name, sentence] of partsOf(command)) expect(help).to.contain(`  ${name}`).and.contain(sentence);
    });
  }

  it('has whole sentences for every argument and option', () => {
    const sentences = commands.flatMap((one) => [one.text, ...partsOf(one).map(([, sentence]) => sentence)]);
    expect(sentences.filter((sentence) => !/^[A-Z][^\n]*\.$/.test(sentence))).to.deep.equal([]);
  });
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand as runAdmin } from '../../src/admin/admin.ts';
import { runCommand as runBootstrap } from '../../src/admin/bootstrap.ts';
import { runCommand as runDoctor } from '../../src/admin/doctor.ts';
import type { Terminal } from '../../src/base/terminal.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { type CommandResult, type Operator, startOperator, trawl } from '../support/operator.ts';

type Command = (args: readonly string[], terminal: Terminal) => Promise<number>;

const slow = 'Redis does not answer yet, perhaps because its disk is busy: waiting for up to 30 s\n';

describe('a command whose Redis is busy', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
    await operator.json('plan', 'set', 'basic', '--quota', '5');
  });
  after(() => operator.stop());

  /** Runs a command whose Redis answers nothing until something was said on standard error. */
  const runDuringPause = async (command: Command, ...args: string[]): Promise<CommandResult> => {
    const thaw = await freezeProcess(operator.pid());
    const said = { out: '', err: '' };
    const out = (text: string) => {
      said.out += text;
    };
    const err = (text: string) => {
      said.err += text;
      thaw();
    };
    const terminal = { out, err, isWatched: false, env: { TRAWL_DATA: operator.data } };
    try {
      return { code: await command(args, terminal), ...said };
    } finally {
      thaw();
    }
  };

  it('waits for it longer than a call of the API, says so once, and is carried out', async () => {
    const { code, out, err } = await runDuringPause(runAdmin, 'plan', 'list', '--json');
    expect({ code, err }).to.deep.equal({ code: 0, err: slow });
    expect(JSON.parse(out)).to.have.length(1);
  });

  it('waits as the doctor, which does not take a Redis that is late for one that is away', async () => {
    const { out, err } = await runDuringPause(runDoctor, '--json');
    const { findings } = JSON.parse(out) as { findings: { readonly about: string; readonly level: string }[] };
    expect(err).to.equal(slow);
    expect(findings.find(({ about }) => about === 'durability')).to.include({ level: 'ok' });
  });

  it('waits as the hook that makes the first account: an install would fail with it', async () => {
    const file = join(operator.data, 'key');
    writeFileSync(file, (await trawl(['bootstrap', '--new-key'])).out);
    const { code, out, err } = await runDuringPause(runBootstrap, '--account', 'films', '--key-file', file);
    expect({ code, err }).to.deep.equal({ code: 0, err: slow });
    expect(out).to.include('with 100 credits');
  });
});

import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { chooseSandbox } from '../../src/worker/choose-sandbox.ts';
import { aFolder } from '../support/redis.ts';

describe('The choice of a sandbox', function () {
  this.timeout(120_000);

  it('returns none without a warning when TRAWL_SANDBOX is off', async () => {
    expect(await chooseSandbox('off', tmpdir(), (text) => expect.fail(text))).to.equal('none');
  });

  it('warns, or throws when a sandbox is required, where bubblewrap is missing', async () => {
    const { PATH } = process.env;
    process.env.PATH = '/nowhere';
    const warnings: string[] = [];
    try {
      expect(await chooseSandbox('auto', tmpdir(), (text) => warnings.push(text))).to.equal('none');
      const thrown = await chooseSandbox('required', tmpdir(), () => undefined).catch((error: Error) => error.message);
      expect(thrown).to.match(/^TRAWL_SANDBOX is required, but bubblewrap does not work here/);
    } finally {
      process.env.PATH = PATH;
    }
    expect(warnings).to.have.lengthOf(1);
  });

  it('writes only into the folder that it tries the sandbox around', async () => {
    const { folder, remove } = aFolder();
    const before = readdirSync(tmpdir());
    const chosen = chooseSandbox('auto', folder, () => undefined);
    while (await Promise.race([chosen.then(() => false), nextTurn(true)])) {
      expect(readdirSync(tmpdir())).to.deep.equal(before);
    }
    expect(readdirSync(folder)).to.deep.equal([]);
    remove();
  });
});

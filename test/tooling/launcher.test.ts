import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { root } from '../support/tree.ts';

const main = `const { version, argv, env } = process;
console.log(JSON.stringify({ version, args: argv.slice(2), here: process.cwd(), cache: env.NODE_COMPILE_CACHE }));`;

describe('the launcher', () => {
  let folder: string;
  let programs: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    programs = join(folder, 'programs');
    for (const name of ['tree/src', 'bare/src', 'bare/node_modules', 'new/src', 'programs', 'elsewhere', 'cache']) {
      mkdirSync(join(folder, name), { recursive: true });
    }
    for (const tree of ['tree', 'bare', 'new']) {
      copyFileSync(join(root, 'trawl'), join(folder, tree, 'trawl'));
      writeFileSync(join(folder, tree, 'src', 'main.ts'), main);
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'tree', 'node_modules'));
    symlinkSync('../tree/trawl', join(folder, 'elsewhere', 'link'));
    symlinkSync('link', join(folder, 'elsewhere', 'trawl'));
  });

  after(() => rmSync(folder, { recursive: true }));

  function start(program: string, args: readonly string[], env: Record<string, string> = {}) {
    const options = {
      cwd: join(folder, 'elsewhere'),
      encoding: 'utf8',
      env: { PATH: process.env.PATH, ...env },
    } as const;
    const { status, stdout, stderr } = spawnSync(join(folder, program), args, options);
    return { status, stderr, said: stdout && JSON.parse(stdout) };
  }

  /** A node program in front of all others. */
  function useNode(script: string): Record<string, string> {
    writeFileSync(join(programs, 'node'), script);
    chmodSync(join(programs, 'node'), 0o755);
    return { PATH: `${programs}:${process.env.PATH}` };
  }

  it('starts the locked Node through links, with the arguments and the folder of its caller', () => {
    const { status, said } = start('elsewhere/trawl', ['admin', 'a b', '--json'], useNode('#!/bin/sh\nexit 1\n'));
    expect(status).to.equal(0);
    expect(said.version).to.match(/^v24\./);
    expect(said.args).to.deep.equal(['admin', 'a b', '--json']);
    expect(said.here).to.equal(join(folder, 'elsewhere'));
  });

  it('keeps compiled code in the cache folder of the user, or where it was told to', () => {
    const cache = join(folder, 'cache');
    expect(start('tree/trawl', [], { XDG_CACHE_HOME: cache }).said.cache).to.equal(join(cache, 'trawl', 'compile'));
    expect(start('tree/trawl', [], { HOME: folder }).said.cache).to.equal(join(folder, '.cache', 'trawl', 'compile'));
    expect(start('tree/trawl', [], { HOME: folder, NODE_COMPILE_CACHE: cache }).said.cache).to.equal(cache);
    expect(start('tree/trawl', [], { HOME: '/dev/null' }).said.cache).to.equal(undefined);
    expect(start('tree/trawl', []).said.cache).to.equal(undefined);
  });

  it('takes another Node 24 when the locked one is not there', () => {
    const { status, said } = start('bare/trawl', ['x'], useNode(`#!/bin/sh\nexec '${process.execPath}' "$@"\n`));
    expect(status).to.equal(0);
    expect(said.args).to.deep.equal(['x']);
  });

  for (const [title, tree, node] of [
    ['says what to do when Node is too old', 'bare', '#!/bin/sh\necho 20\n'],
    ['says what to do when there is no Node', 'bare', '#!/bin/sh\nexit 127\n'],
    ['says what to do when nothing is installed', 'new', '#!/bin/sh\necho 24\n'],
  ] as const) {
    it(title, () => {
      const { status, stderr } = start(`${tree}/trawl`, [], useNode(node));
      expect(status).to.equal(1);
      expect(stderr).to.equal(`trawl is not set up yet: run 'make setup' in ${join(folder, tree)}\n`);
    });
  }
});

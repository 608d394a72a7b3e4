import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { chooseSandbox } from '../../src/worker/choose-sandbox.ts';
import { python } from '../support/media.ts';
import { openToOthers, systemPython } from '../support/other-user.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { openTestWorkspace } from '../support/workspace.ts';

describe('The choice of a sandbox', () => {
  it('returns none without a warning when TRAWL_SANDBOX is off', async () => {
    expect(await chooseSandbox('off', tmpdir(), python, (text) => expect.fail(text))).to.equal('none');
  });

  it('refuses to start where bubblewrap is missing and required, or where nothing else isolates children', async () => {
    const { folder, remove } = aFolder();
    const { PATH } = process.env;
    process.env.PATH = '/nowhere';
    const refusalOf = (mode: 'auto' | 'required') =>
      chooseSandbox(mode, join(folder, 'work'), python, () => undefined).catch((error: Error) => error.message);
    try {
      expect(await refusalOf('required')).to.match(/^TRAWL_SANDBOX is required, but bubblewrap does not work here/);
      expect(await refusalOf('auto')).to.match(
        /^bubblewrap does not work here.*TRAWL_SANDBOX=off.*can then read the record\.$/s,
      );
    } finally {
      process.env.PATH = PATH;
      remove();
    }
  });

  it('never runs children as root without bubblewrap: they have another user id', async () => {
    const { folder, remove } = aFolder();
    const { PATH } = process.env;
    const [bin, root] = [join(folder, 'bin'), join(folder, 'data', 'work')];
    mkdirSync(bin);
    symlinkSync('/usr/bin/prlimit', join(bin, 'prlimit'));
    const close = openToOthers(folder);
    try {
      process.env.PATH = bin;
      expect(await chooseSandbox('auto', root, systemPython, () => undefined)).to.equal('landlock-user');
      process.env.PATH = PATH;
      const place = await openTestWorkspace('landlock-user', 1, {}, systemPython, root);
      const { lines, stderr } = await place.python(
        "import os; open('own', 'w').close(); print(os.getuid() >= 2_000_000_000, os.getgid() == os.getuid(), os.getgroups(), oct(os.stat('.').st_mode & 0o777))",
      );
      await place.stop();
      expect(lines, stderr).to.deep.equal(['True True [] 0o700']);
      expect(readdirSync(root)).to.deep.equal([]);
    } finally {
      process.env.PATH = PATH;
      close();
      remove();
    }
  });

  it('refuses to start, and chooses nothing weaker, when a busy machine does not end its trial of bubblewrap in time', async () => {
    const { folder, remove } = aFolder();
    const { PATH } = process.env;
    writeFileSync(join(folder, 'bwrap'), '#!/bin/sh\nexec /bin/sleep 600\n', { mode: 0o755 });
    try {
      process.env.PATH = `${folder}:${PATH}`;
      const warn = (text: string) => expect.fail(text);
      const refusal = await chooseSandbox('auto', join(folder, 'work'), python, warn, 300).catch(
        (error: Error) => error,
      );
      expect(String(refusal)).to.match(/A trial of the sandbox bwrap-\w+ did not end within 0\.3 s; .* no weaker one/);
    } finally {
      process.env.PATH = PATH;
      remove();
    }
  });

  const namespaces: [title: string, map: string, chosen: string][] = [
    ['of a namespace with 65,536 ids gives children one of them', '0 0 65536\n', 'landlock-user'],
    ['of a namespace with its own id alone has Landlock isolate children', '0 0 1\n', 'none'],
  ];
  for (const [title, map, chosen] of namespaces) {
    it(`without bubblewrap, root ${title}`, async () => {
      const { folder, remove } = aFolder();
      const [bin, work] = [join(folder, 'bin'), join(folder, 'data', 'work')];
      mkdirSync(bin);
      symlinkSync('/usr/bin/prlimit', join(bin, 'prlimit'));
      for (const path of [dirname(folder), folder]) chmodSync(path, 0o711);
      const choice = join(import.meta.dirname, '..', '..', 'src', 'worker', 'choose-sandbox.ts');
      const text = `
        const { chooseSandbox } = await import(${JSON.stringify(choice)});
        process.env.PATH = ${JSON.stringify(bin)};
        console.log(await chooseSandbox('auto', ${JSON.stringify(work)}, '/usr/bin/python3', () => undefined));
      `;
      const child = spawn('unshare', ['--user', 'sh', '-c', 'read go; exec "$0" -e "$1"', process.execPath, text]);
      let said = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (said += piece));
      const ended = once(child, 'close');
      const isApart = () => readlinkSync(`/proc/${child.pid}/ns/user`) !== readlinkSync('/proc/self/ns/user');
      await until(isApart, 5, 'the namespace is there');
      for (const file of ['uid_map', 'gid_map']) writeFileSync(`/proc/${child.pid}/${file}`, map);
      child.stdin.end('go\n');
      await ended;
      chmodSync(dirname(folder), 0o700);
      remove();
      expect(said.trim()).to.equal(chosen);
    });
  }

  it('writes only into the folder that it tries the sandbox around', async () => {
    const { folder, remove } = aFolder();
    const before = readdirSync(tmpdir());
    const chosen = chooseSandbox('auto', folder, python, () => undefined);
    while (await Promise.race([chosen.then(() => false), nextTurn(true)])) {
      expect(readdirSync(tmpdir())).to.deep.equal(before);
    }
    expect(readdirSync(folder)).to.deep.equal([]);
    remove();
  });
});

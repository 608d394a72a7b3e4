import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { findCgroup, type OpenCgroup, openCgroup, removeCgroup } from '../../src/base/cgroup.ts';
import { startGateway } from '../support/gateway.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesOf, startWorker } from '../support/worker.ts';
import { openTestWorkspace, sandboxes } from '../support/workspace.ts';
import { attackWorker } from './hostile-attempt.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

const mebibyte = 2 ** 20;
const limit = 128 * mebibyte;
const forks = `
import os, signal
for number in range(8):
    if os.fork() == 0:
        held = bytearray(b'x' * (60 << 20))
        signal.pause()
signal.pause()
`;
/** Fails at once when its child was ended, before any check of the worker. */
const quickFailure = `
import os, signal
pid = os.fork()
if pid == 0:
    for number in range(8):
        if os.fork() == 0:
            held = b'x' * (60 << 20)
            signal.pause()
    os.wait()
    os._exit(1)
os.waitpid(pid, 0)
failure = 'This video is private'
`;

const here = findCgroup();

// Only where this user may make one.
(typeof here === 'string' ? () => undefined : describe)('Children in a cgroup', () => {
  const folder = join(typeof here === 'string' ? '' : here.folder, `trawl-test-${process.pid}`);
  let source: HostileSource;
  let opened: OpenCgroup | undefined;

  before(async () => {
    if (typeof here !== 'string') opened = await openCgroup(here, folder);
    mkdirSync(folder);
    // In version 2, each cgroup says what those below it may limit.
    const control = join(folder, 'cgroup.subtree_control');
    if (existsSync(control)) writeFileSync(control, '+memory');
    source = await startHostileSource();
  });
  after(async () => {
    await source?.stop();
    await removeCgroup(folder);
    await opened?.close();
  });

  const inside = () =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(folder, name));

  for (const sandbox of sandboxes) {
    it(`never have more memory than their limit together (sandbox ${sandbox})`, async () => {
      const place = await openTestWorkspace(sandbox, 1, { memoryBytes: limit }, undefined, undefined, folder);
      await place.python(forks);
      const peak = inside().map(peakOf);
      await place.stop();
      expect(place.breaches).to.deep.equal(['memory']);
      expect(peak).to.have.lengthOf(1);
      expect(peak[0]).to.be.within(limit / 2, limit);
      expect(inside()).to.deep.equal([]);
    });

    it(`end a job as a memory limit that the worker measured does (sandbox ${sandbox})`, async () => {
      for (const text of [forks, quickFailure]) {
        const { outcome, left } = await attackWorker({
          ...{ source, sandbox, url: source.lay(text), cgroups: folder, memoryBytes: 256 * mebibyte },
        });
        expect(outcome).to.deep.equal({ is: 'failed', code: 'file_damaged' });
        expect(left).to.deep.equal([]);
        expect(inside()).to.deep.equal([]);
      }
    });
  }

  for (const mode of ['required', 'off'] as const) {
    it(`leave no cgroup when their worker is killed (sandbox ${mode})`, async () => {
      const { folder: home, remove } = aFolder();
      const order = { endpoint: 'video', args: { script: 'sleep 600' } } as const;
      const gateway = await startGateway({ folder: home, order });
      const options = { folder: home, gateway: gateway.address, egress: 'http://127.0.0.1:9', sandbox: mode };
      const worker = startWorker({ ...options, cgroup: folder });
      await until(() => inside().length === 1 && processIdsIn(inside()[0]).length > 0, 20, 'a child runs');
      worker.process.kill('SIGKILL');
      await until(() => inside().length === 0, 10, 'no cgroup is left');
      await until(() => processesOf(home).length === 0, 10, 'no process is left');
      await gateway.stop();
      remove();
    });
  }

  it('leave no cgroup after the next start when everything was killed', async () => {
    const place = await openTestWorkspace('none', 1, {}, undefined, undefined, folder);
    const ended = place.python('import signal; signal.pause()');
    const left = () => processIdsIn(inside()[0]);
    await until(() => left().length > 0, 10, 'a child runs');
    const ids = left();
    await openCgroup({ version: 1, folder }, place.root);
    expect(inside()).to.deep.equal([]);
    await ended;
    await until(() => ids.every((id) => !existsSync(`/proc/${id}`)), 10, 'no process is left');
    await place.stop();
  });
});

function peakOf(folder: string): number {
  const file = ['memory.max_usage_in_bytes', 'memory.peak'].map((name) => join(folder, name)).find(existsSync);
  return Number(readFileSync(file ?? '', 'utf8'));
}

function processIdsIn(folder = ''): string[] {
  return readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean);
}

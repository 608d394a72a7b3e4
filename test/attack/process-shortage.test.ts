import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { InspectorBusy } from '../../src/worker/inspection-slots.ts';
import type { Sandbox } from '../../src/worker/sandbox-command.ts';
import { programsOfOthers } from '../support/other-user.ts';
import { findProcessCgroup, type ProcessCgroup } from '../support/process-cgroup.ts';
import { until } from '../support/until.ts';
import { processesOf } from '../support/worker.ts';
import { film, startHostilePool } from './hostile-pool.ts';
import { type HostileSource, startHostileSource } from './hostile-source.ts';

/** Leaves a process outside its group when it is ended. */
const leave = `
import os, signal
if os.fork() == 0:
    os.setsid()
    report('left')
    signal.pause()
signal.pause()
`;

const openCgroup = findProcessCgroup();
if (typeof openCgroup === 'string') console.log(`skipped: a pod without processes, as ${openCgroup}`);

(typeof openCgroup === 'string' ? () => undefined : describe)(
  'A pod in which inspections have used up all processes',
  () => {
    let cgroup: ProcessCgroup;
    let source: HostileSource;
    const others = programsOfOthers(5);
    before(async () => {
      source = await startHostileSource();
      if (typeof openCgroup !== 'string') cgroup = await openCgroup();
    });
    after(async () => {
      await source.stop();
      await cgroup?.remove();
    });

    /** Runs an attack on a warm parent in the cgroup; then the same parent, and nothing else, is there for another inspection. */
    async function attack(
      sandbox: Sandbox,
      run: (pool: Awaited<ReturnType<typeof startHostilePool>>) => Promise<void>,
    ) {
      const pool = await startHostilePool(source, sandbox, sandbox === 'none' ? undefined : others);
      try {
        const usual = processesOf(pool.folder);
        const ids = usual.map((line) => line.split(' ')[0] ?? '');
        const isParent = (words: string) => !words.includes('landlock.py') && words.includes('inspector-parent.py');
        const parents = ids.filter((id) => isParent(readFileSync(`/proc/${id}/cmdline`, 'utf8')));
        expect(parents).to.have.length(1);
        cgroup.add(parents[0] ?? '');
        await run(pool);
        cgroup.limit('max');
        expect(await pool.inspect(source.lay(film))).to.have.property('metadata');
        expect(processesOf(pool.folder)).to.deep.equal(usual);
      } finally {
        cgroup.limit('max');
        await pool.close();
      }
    }

    for (const processes of [1, 2]) {
      it(`fails the next inspection and keeps the inspector, where ${processes - 1} are left`, () =>
        attack('none', async (pool) => {
          cgroup.limit(processes);
          const answer = await pool.inspect(source.lay(film));
          expect(answer).to.have.nested.property('failure.code', 'worker_failed');
        }));
    }

    it('ends what an inspection left and keeps the inspector, where none is left and Landlock is below version 6', () =>
      attack('landlock-user', async (pool) => {
        const gone = new AbortController();
        const answer = pool.inspect(source.lay(leave), 'hostile', gone.signal).catch((error: Error) => error);
        await until(() => source.reports.includes('left'), 10, 'a process has left its group');
        cgroup.limit(1);
        gone.abort();
        expect(await answer).to.be.instanceOf(InspectorBusy);
      }));
  },
);

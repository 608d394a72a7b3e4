import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { hasNamespaces } from '../../src/worker/sandbox-command.ts';
import { until } from '../support/until.ts';
import { processesOf } from '../support/worker.ts';
import { openTestWorkspace, sandboxes } from '../support/workspace.ts';
import { expectedAnswer, kernelAttacks } from './kernel-attacks.ts';

describe('A child that was taken over', () => {
  for (const sandbox of [...sandboxes, 'landlock-user'] as const) {
    it(`gets no namespace, no mount, no hidden memory, no rarely used part of the kernel, and no call that acts on modes of files, other processes or past TCP (sandbox ${sandbox})`, async () => {
      const place = await openTestWorkspace(sandbox, 1);
      const { lines, stderr } = await place.python(kernelAttacks);
      await place.stop();
      const answers = lines.map((line) => JSON.parse(line) as [string, string]);
      expect(answers.length, stderr).to.be.at.least(40);
      const got = answers.filter(([name, answer]) => answer !== expectedAnswer(name, hasNamespaces(sandbox)));
      expect(got).to.deep.equal([]);
    });

    it(`has no capability, not even in its bounding set, a seccomp filter, and is the first to be ended without memory (sandbox ${sandbox})`, async () => {
      const place = await openTestWorkspace(sandbox, 1);
      const ended = place.python('import signal; signal.pause()');
      try {
        const seen = await until(() => statusOfPython(place.folder), 10, 'Python runs');
        const sets = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((name) => `${name}: 0000000000000000`);
        expect(seen).to.deep.equal([...sets, 'NoNewPrivs: 1', 'Seccomp: 2', 'oom_score_adj: 1000']);
      } finally {
        await place.stop();
        await ended;
      }
    });
  }
});

/** Returns lines about the Python that runs the text of a test, read from outside its sandbox. */
function statusOfPython(folder: string): string[] | null {
  const id = processesOf(folder)
    .map((line) => line.split(' ')[0] ?? '')
    .find((id) => /^[^\0]*python3\0-I\0-c\0/.test(readProc(id, 'cmdline')));
  if (id === undefined) return null;
  const lines = readProc(id, 'status').replaceAll('\t', ' ').split('\n');
  const told = lines.filter((line) => /^(?:Cap\w+|Seccomp|NoNewPrivs):/.test(line));
  return [...told, `oom_score_adj: ${readProc(id, 'oom_score_adj').trim()}`];
}

function readProc(id: string, file: string): string {
  try {
    return readFileSync(`/proc/${id}/${file}`, 'utf8');
  } catch {
    // The process has ended meanwhile.
    return '';
  }
}

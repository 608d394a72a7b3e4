import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { killGroup, untilGone } from '../base/child-process.ts';
import type { ChildEnding } from '../media/spawn-child.ts';
import { hasNamespaces, type Sandbox, statusDescriptor } from './sandbox-command.ts';

/** Then the supervisor is killed itself, and processes that left its group may run on. */
const superviseMs = 10_000;

/**
 * The kernel ends all processes of a process namespace before its first one is gone. Bubblewrap itself is no sign of that: it ends
 * as soon as its command does.
 */
const namespaceEnding: ChildEnding = {
  stdio: ['pipe', 'pipe', 'pipe', 'ignore', 'pipe'],
  kill: (child) => killGroup(child, 'SIGKILL'),
  untilEmpty: async (child) => {
    const exited = new Promise((resolve) => child.once('exit', resolve).once('error', resolve));
    // Nothing is told by a bubblewrap that could not be started or ended before it ran anything.
    const told = await text(child.stdio[statusDescriptor] as Readable).catch(() => '');
    const [, first] = /"child-pid": (\d+)/.exec(told) ?? [];
    // Bubblewrap tells it at the start: looking from then on costs as much processor time as yt-dlp, and its limit is for the end alone.
    await exited;
    if (first !== undefined) await untilGone(Number(first));
  },
};

/** A process that leaves its group or outlives its parent becomes a child of the supervisor in supervisor.py, which ends last. */
const supervisorEnding: ChildEnding = {
  stdio: 'pipe',
  kill: (child) => {
    child.kill('SIGTERM');
    const hard = setTimeout(() => killGroup(child, 'SIGKILL'), superviseMs);
    child.once('exit', () => clearTimeout(hard));
  },
  untilEmpty: async () => {},
};

/** Returns the way to end everything in a sandbox. */
export function endingOf(sandbox: Sandbox): ChildEnding {
  return hasNamespaces(sandbox) ? namespaceEnding : supervisorEnding;
}

import { apiPathsOf } from '../../src/runners/kubernetes/kube-client.ts';
import { parseEvent, unreadOfPod } from '../../src/runners/kubernetes/parse-event.ts';
import { readPodSnapshot } from '../../src/runners/kubernetes/snapshot.ts';
import { namespace, type Testbed } from '../support/cluster/testbed.ts';
import type { Measurement } from './measurement.ts';

const rounds = 7;
const calls = 2_000;

/** The events of a pod that runs under a leading controller, parsed whole and without the parts that nothing reads. */
export async function compareEventParsing(testbed: Testbed): Promise<Measurement> {
  const id = await testbed.submit((_, delivers) => ({ runMs: 2_000, ending: delivers }));
  const { metadata } = await testbed.runningPod(id);
  const object = await testbed.cluster.admin.ask('GET', `${apiPathsOf(namespace).pods}/${metadata.name}`);
  await testbed.waitUntilEnded(id, 60);
  const line = JSON.stringify({ type: 'MODIFIED', object });
  const [parts, whole]: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    const took = [timed(line, unreadOfPod), timed(line, [])] as const;
    // The first round warms up.
    if (round > 0) parts.push(took[0]);
    if (round > 0) whole.push(took[1]);
  }
  const [fast, plain] = [Math.min(...parts), Math.min(...whole)];
  return {
    what: 'an event of a pod parsed whole : without what nothing reads',
    ratio: plain / fast,
    bound: { least: 1.1 },
    optimisation: 'src/runners/kubernetes/parse-event.ts',
    because: `${plain.toFixed(1)} µs : ${fast.toFixed(1)} µs`,
  };
}

/** Returns the processor time of one event in microseconds. */
function timed(line: string, unread: typeof unreadOfPod): number {
  const before = process.cpuUsage();
  for (let n = 0; n < calls; n++) readPodSnapshot((parseEvent(line, unread) as { object: never }).object);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}

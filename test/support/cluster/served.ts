import type { Cluster } from './cluster.ts';

/**
 * Requests for Jobs, pods and their events that the server carried out, for anybody, without lists and watches. Those that it refused
 * tell how many were at it in the same moment: the cluster's own controllers overtake each other.
 */
export function countServed(cluster: Cluster): Promise<number> {
  return sum(
    cluster,
    (line) => /resource="(jobs|pods|events)"/.test(line) && !/verb="(WATCH|LIST|CONNECT)"/.test(line),
  );
}

/** Those of our controller, when nobody else makes, changes or deletes Jobs: to each change of a Job belongs one of its pod. */
export async function countOurs(cluster: Cluster): Promise<number> {
  const ofVerb = (verb: string) =>
    sum(cluster, (line) => line.includes('resource="jobs"') && line.includes(`subresource="",verb="${verb}"`));
  const [made, changed, deleted] = await Promise.all([ofVerb('POST'), ofVerb('PATCH'), ofVerb('DELETE')]);
  return made + 2 * changed + deleted;
}

async function sum({ admin }: Cluster, isCounted: (line: string) => boolean): Promise<number> {
  const text = await admin.ask<string>('GET', '/metrics');
  return text
    .split('\n')
    .filter((line) => line.startsWith('apiserver_request_total{') && !line.includes('code="4') && isCounted(line))
    .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0);
}

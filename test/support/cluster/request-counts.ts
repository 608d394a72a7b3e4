import type { Cluster } from './cluster.ts';

/**
 * Requests for Jobs, pods and their events that the server carried out, for anybody, without lists and watches. Those that it refused
 * tell how many were at it in the same moment: the cluster's own controllers overtake each other.
 */
export function countServedRequests(cluster: Cluster): Promise<number> {
  const isCounted = (line: string) =>
    /resource="(jobs|pods|events)"/.test(line) && !/verb="(WATCH|LIST|CONNECT)"/.test(line);
  return sum(cluster, (line) => Number(isCounted(line)));
}

/** Those of them that change something: the garbage collector reads again, now and then, what its cache shows late. */
export function countServedChanges(cluster: Cluster): Promise<number> {
  const isCounted = (line: string) =>
    /resource="(jobs|pods|events)"/.test(line) && /verb="(POST|PUT|PATCH|DELETE)"/.test(line);
  return sum(cluster, (line) => Number(isCounted(line)));
}

/** Those of our controller, when nobody else makes, changes or deletes Jobs: to each change of a Job belongs one of its pod. */
export function countControllerRequests(cluster: Cluster): Promise<number> {
  const weights: Readonly<Record<string, number>> = { POST: 1, PATCH: 2, DELETE: 1 };
  const verb = /resource="jobs".*subresource="",verb="(\w+)"/;
  return sum(cluster, (line) => weights[verb.exec(line)?.[1] ?? ''] ?? 0);
}

async function sum({ admin }: Cluster, weightOf: (line: string) => number): Promise<number> {
  const text = await admin.ask<string>('GET', '/metrics');
  return text
    .split('\n')
    .filter((line) => line.startsWith('apiserver_request_total{') && !line.includes('code="4'))
    .reduce((total, line) => total + weightOf(line) * Number(line.slice(line.lastIndexOf(' '))), 0);
}

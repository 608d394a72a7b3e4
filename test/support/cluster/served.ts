import type { Cluster } from './cluster.ts';

/**
 * Requests for Jobs, pods and their events that the server carried out, for anybody, without lists and watches. Those that it refused
 * tell how many were at it in the same moment: the cluster's own controllers overtake each other.
 */
export async function countServed({ admin }: Cluster): Promise<number> {
  const text = await admin.ask<string>('GET', '/metrics');
  return text
    .split('\n')
    .filter((line) => line.startsWith('apiserver_request_total{') && /resource="(jobs|pods|events)"/.test(line))
    .filter((line) => !/verb="(WATCH|LIST|CONNECT)"|code="4/.test(line))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

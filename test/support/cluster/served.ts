import type { Cluster } from './cluster.ts';

/** Requests for Jobs, pods and their events that the server counts, by anybody, without lists and watches. What is not found is asked by the fake kubelet alone. */
export async function countServed({ admin }: Cluster): Promise<number> {
  const text = await admin.ask<string>('GET', '/metrics');
  return text
    .split('\n')
    .filter((line) => line.startsWith('apiserver_request_total{') && /resource="(jobs|pods|events)"/.test(line))
    .filter((line) => !/verb="(WATCH|LIST|CONNECT)"|code="404"/.test(line))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

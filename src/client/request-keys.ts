import { hash } from 'node:crypto';
import type { GetOrder } from './get-order.ts';

/**
 * Returns a function that gives each request of a command its Idempotency-Key. The same command with the same key asks for the same
 * jobs, in whichever order its URLs stand; a URL that stands twice has two.
 */
export function requestKeys(
  commandKey: string,
  { endpoint, parameters, playlist }: Pick<GetOrder, 'endpoint' | 'parameters' | 'playlist'>,
): (query: string) => string {
  const timesAsked = new Map<string, number>();
  return (query) => {
    const times = (timesAsked.get(query) ?? 0) + 1;
    timesAsked.set(query, times);
    const request = JSON.stringify([endpoint, parameters, playlist, query, times]);
    return `${commandKey}-${hash('sha256', request).slice(0, 16)}`;
  };
}

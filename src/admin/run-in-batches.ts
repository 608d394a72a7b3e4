const batchSize = 50;

/** Does the same for every item, some at once, and gives the results in their order; `done` hears how many are. */
export async function runInBatches<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  done?: (count: number) => void,
): Promise<R[]> {
  const results: R[] = [];
  for (let n = 0; n < items.length; n += batchSize) {
    results.push(...(await Promise.all(items.slice(n, n + batchSize).map(work))));
    done?.(results.length);
  }
  return results;
}

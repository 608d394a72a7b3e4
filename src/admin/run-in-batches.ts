const batchSize = 50;

/** Runs `work` for every item, 50 at a time, and returns the results in order; `done` gets the number done so far. */
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

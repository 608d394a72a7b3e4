/**
 * Does something with each value in their order, so many at once, and returns the results in this order; a failure is thrown, and the values
 * behind it are left to the others.
 */
export async function inParallel<T, R>(
  most: number,
  values: readonly T[],
  work: (value: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const left = values.entries();
  const takeNext = async () => {
    for (const [n, value] of left) results[n] = await work(value);
  };
  await Promise.all(Array.from({ length: Math.min(most, values.length) }, takeNext));
  return results;
}

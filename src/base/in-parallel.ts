/** Does something with each value in their order, so many at once; a failure is thrown, and the values behind it are left to the others. */
export async function inParallel<T>(
  most: number,
  values: readonly T[],
  work: (value: T) => Promise<unknown>,
): Promise<void> {
  const left = values.values();
  const takeNext = async () => {
    for (const value of left) await work(value);
  };
  await Promise.all(Array.from({ length: Math.min(most, values.length) }, takeNext));
}

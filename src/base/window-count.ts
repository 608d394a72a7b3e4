/**
 * Returns a function that counts names in the memory of this process, and returns the count of the name in the present window and the
 * seconds until that ends. The first count after a window begins the next one, for all names.
 */
export function countInWindows(windowMs: number) {
  const counts = new Map<string, number>();
  let endsAt = Number.NEGATIVE_INFINITY;
  return (name: string) => {
    const now = performance.now();
    if (now >= endsAt) {
      counts.clear();
      endsAt = now + windowMs;
    }
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return { count, secondsLeft: Math.ceil((endsAt - now) / 1000) };
  };
}

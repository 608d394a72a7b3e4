/** Count of a name in the present window, and the seconds until the window ends. */
interface WindowCount {
  readonly count: number;
  readonly secondsLeft: number;
}

/** Returns a function that counts names in the memory of this process. The first count after a window begins the next one, for all names. */
export function countInWindows(windowMs: number): (name: string) => WindowCount {
  const counts = new Map<string, number>();
  let endsAt = Number.NEGATIVE_INFINITY;
  return (name) => {
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

const cacheMs = 60_000;

/** Reads a value again after a minute; the last value holds while reading fails. */
export function cacheForMinute<T>(
  read: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let kept: { readonly value: T; readonly at: number } | null = null;
  return async () => {
    if (kept && now() - kept.at < cacheMs) return kept.value;
    try {
      kept = { value: await read(), at: now() };
    } catch (error) {
      if (!kept) throw error;
    }
    return kept.value;
  };
}

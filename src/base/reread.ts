/** Returns a function that reads a value again when the last one has reached an age; the last one holds while reading fails. */
export function rereadAfter<A extends readonly unknown[], T>(
  ageMs: number,
  read: (...given: A) => Promise<T>,
  now = (): number => performance.now(),
): (...given: A) => Promise<T> {
  let last: { readonly value: T; readonly at: number } | null = null;
  return async (...given) => {
    if (last && now() - last.at < ageMs) return last.value;
    try {
      last = { value: await read(...given), at: now() };
    } catch (error) {
      if (!last) throw error;
    }
    return last.value;
  };
}

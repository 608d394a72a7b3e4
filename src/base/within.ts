/** Waits for the work, but no longer than `maxMs`; the work itself goes on. */
export async function within(maxMs: number, work: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, maxMs);
  await Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}

/** Returns the error of what has to fail, `null` when it does not. */
export function failureOf(asking: Promise<unknown>): Promise<unknown> {
  return asking.then(
    () => null,
    (error: unknown) => error,
  );
}

/**
 * Returns a function that declares tests like `it`: the first one to run begins all of them, `most` at a time. Tests that mostly wait, such as for
 * the clock of a live source, take together little longer than the longest one. No two of them may write the same file.
 */
export function testsAtOnce(most: number): (title: string, test: () => unknown) => void {
  const tests: (() => unknown)[] = [];
  let ends: readonly Promise<unknown>[] | null = null;
  // `--grep` and a timeout leave tests that nothing waits for, and hooks end what they use.
  after(() => Promise.allSettled(ends ?? []));
  return (title, test) => {
    const n = tests.push(test) - 1;
    it(title, () => {
      ends ??= beginAll(tests, most);
      return ends[n];
    });
  };
}

function beginAll(tests: readonly (() => unknown)[], most: number): readonly Promise<unknown>[] {
  const ends = tests.map((test) => ({ test, ...Promise.withResolvers<unknown>() }));
  const left = ends.values();
  const lane = async () => {
    for (const { test, resolve, reject } of left) await Promise.resolve().then(test).then(resolve, reject);
  };
  for (let n = 0; n < most; n += 1) void lane();
  // A test may fail before its turn to tell of it.
  for (const { promise } of ends) promise.catch(() => undefined);
  return ends.map(({ promise }) => promise);
}

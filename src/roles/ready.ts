/** What must hold before the work can be done, by the name of the part that it needs. */
export type Checks = Map<string, () => boolean | Promise<boolean>>;

/** Names the parts that cannot do their work now. */
export async function findMissing(checks: Checks): Promise<string[]> {
  const asked = [...checks].map(async ([name, holds]) => ((await holds()) ? [] : [name]));
  return (await Promise.all(asked)).flat();
}

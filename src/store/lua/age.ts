/** Returns Lua that is true before a time, unless the wait until then is longer than any wait: then the clock has gone back. */
export function isEarly(at: string, maxWaitMs: number): string {
  return `(now < tonumber(${at}) and ${at} - now <= ${maxWaitMs})`;
}

/**
 * Lua of `before`: entries that are older have reached their age. The earlier one of two times decides, TIME of the script and the
 * time that its caller followed: either may be wrong after a jump of the clock, and to remove too late does no harm.
 */
export const beforeAge = /* lua */ `
local before = math.min(now, tonumber(seenNow)) - tonumber(age)
`;

export const ageArgNames = ['age', 'seenNow'] as const;

/** Returns the values of these arguments for what is removed after so many milliseconds. */
export function ageValues({ clock }: { readonly clock: { now(): number } }, ageMs: number) {
  return { age: ageMs, seenNow: clock.now() };
}

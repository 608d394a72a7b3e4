/**
 * Lua of `before`: entries older than that have reached their age. By TIME of the script as by the time that its caller followed:
 * either of the two may be from before a jump of the clock, which its caller learns of later.
 */
export const beforeAge = /* lua */ `
local before = math.min(now, tonumber(seenNow)) - tonumber(age)
`;

export const ageArgNames = ['age', 'seenNow'] as const;

/** Returns the values of these arguments for what is removed after so many milliseconds. */
export function ageValues({ clock }: { readonly clock: { now(): number } }, ageMs: number) {
  return { age: ageMs, seenNow: clock.now() };
}

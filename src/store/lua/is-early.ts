/** Returns Lua that is true before a time, unless the wait until then is longer than any is: the clock has gone back since. */
export function isEarly(at: string, maxWaitMs: number): string {
  return `(now < tonumber(${at}) and ${at} - now <= ${maxWaitMs})`;
}

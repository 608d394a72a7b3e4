const quietMs = 60_000;

/** Returns a function that calls this one, but not again within a minute: a warning that many events give is logged once. */
export function onceAMinute<A extends readonly unknown[]>(call: (...given: A) => void): (...given: A) => void {
  let quietUntil = 0;
  return (...given) => {
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + quietMs;
    call(...given);
  };
}

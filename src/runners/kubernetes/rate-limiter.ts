/** Token bucket of the requests to the API server. */
export type ApiRateLimit = ReturnType<typeof makeRateLimiter>;

const minSpeed = 1 / 16;
/** The speed doubles in this time until it is back at its limit. */
const doubleMs = 10_000;

/** A bucket of `burst` requests that fills at `perSecond`; `now` gives milliseconds that never go back. */
export function makeRateLimiter(perSecond: number, burst: number, now = () => performance.now()) {
  let tokens = burst;
  let part = 1;
  let filledAt = now();

  const fill = () => {
    const passed = now() - filledAt;
    filledAt += passed;
    part = Math.min(1, part * 2 ** (passed / doubleMs));
    tokens = Math.min(burst, tokens + (passed / 1000) * perSecond * part);
  };
  const waitFor = (left: number) => (left >= 0 ? 0 : Math.ceil((-left * 1000) / (perSecond * part)));
  return {
    /** Takes one token; returns how long to wait for it, in milliseconds. */
    take(): number {
      fill();
      tokens -= 1;
      return waitFor(tokens);
    },
    /** Time for which a request that came now would wait, in milliseconds. */
    waitMs(): number {
      fill();
      return waitFor(tokens - 1);
    },
    /** True while requests wait for tokens. */
    isExhausted(): boolean {
      fill();
      return tokens < 0;
    },
    /** Halves the speed, because the API server answered 429. */
    halve(): void {
      fill();
      part = Math.max(minSpeed, part / 2);
      tokens = Math.min(tokens, 0);
    },
  };
}

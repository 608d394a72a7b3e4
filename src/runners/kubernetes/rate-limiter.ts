/** How fast requests may follow each other. */
export interface ApiRateLimit {
  /** Takes the next place in the line; answers how long to wait for it, in milliseconds. */
  take(): number;
  /** Whether somebody waits for a turn. */
  isExhausted(): boolean;
  /** Halves the speed: the server has had enough. */
  halve(): void;
}

const slowestPart = 1 / 16;
/** Time in which a halved speed comes back. */
const recoverMilliseconds = 10_000;

/** A bucket of `burst` requests that fills at `perSecond`; `now` gives milliseconds that never go back. */
export function makeRateLimiter(perSecond: number, burst: number, now: () => number): ApiRateLimit {
  let tokens = burst;
  let part = 1;
  let filledAt = now();

  const fill = () => {
    const passed = now() - filledAt;
    filledAt += passed;
    part = Math.min(1, part * 2 ** (passed / recoverMilliseconds));
    tokens = Math.min(burst, tokens + (passed / 1000) * perSecond * part);
  };
  return {
    take() {
      fill();
      tokens -= 1;
      return tokens >= 0 ? 0 : Math.ceil((-tokens * 1000) / (perSecond * part));
    },
    isExhausted() {
      fill();
      return tokens < 0;
    },
    halve() {
      fill();
      part = Math.max(slowestPart, part / 2);
      tokens = Math.min(tokens, 0);
    },
  };
}

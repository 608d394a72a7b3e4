/** Returns the processor time of this thread in milliseconds. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * Watches how long other work in this process waits for its turn, in processor time of its thread: what other programs of the
 * machine take does not count. Returns a function that ends it and returns the longest turn in milliseconds.
 */
export function watchTurns(): () => number {
  let [last, longest] = [threadMs(), 0];
  const look = () => {
    const now = threadMs();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  return () => {
    clearInterval(timer);
    look();
    return longest;
  };
}

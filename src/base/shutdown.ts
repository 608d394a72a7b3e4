import { messageOf } from './errors.ts';

type Opened = [name: string, release: () => unknown, limitSeconds?: number];

export type Shutdown = ReturnType<typeof makeShutdown>;

/** Collects what was opened, so that it is released whatever goes wrong. */
export function makeShutdown() {
  const opened: Opened[] = [];
  let running: Promise<void> | undefined;
  let ended = false;
  const releaseAll = async () => {
    const errors: Error[] = [];
    // What is opened while others are released is released too.
    for (let last = opened.pop(); last; last = opened.pop()) {
      const error = await releaseOne(last);
      if (error) errors.push(error);
    }
    ended = true;
    if (errors.length) throw new AggregateError(errors, errors.map((error) => error.message).join('; '));
  };
  return {
    /** Remembers how to release something; with a limit, it is not waited for longer than that. */
    add: (...resource: Opened) => {
      if (ended) throw new Error(`${resource[0]} was opened after everything was released`);
      opened.push(resource);
    },
    /** Releases everything, last opened first; throws one AggregateError at the end. Repeating it gives the same promise. */
    run: () => {
      // Begun a moment later, so that a release which stops everything once more gets this very promise.
      running ??= Promise.resolve().then(releaseAll);
      return running;
    },
  };
}

async function releaseOne([name, release, limitSeconds]: Opened): Promise<Error | undefined> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer =
    limitSeconds === undefined
      ? undefined
      : setTimeout(() => reject(new Error(`not released within ${limitSeconds} s`)), limitSeconds * 1000);
  try {
    await Promise.race([late, (async () => release())()]);
    return undefined;
  } catch (cause) {
    return new Error(`${name}: ${messageOf(cause)}`, { cause });
  } finally {
    clearTimeout(timer);
  }
}

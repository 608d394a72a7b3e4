import { release } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { isListening } from '../base/reach-server.ts';
import { type ServerAddress, showAddress } from '../base/server-address.ts';
import type { NetworkTrial } from '../model/network-trial.ts';

interface NetworkTargets {
  /** Addresses that a worker must reach. */
  readonly needed: readonly ServerAddress[];
  /** Addresses that network policies close to workers, each as `host:port`. */
  readonly closed: readonly string[];
  /** Time for a network plugin to open and close the ways of a new pod. */
  readonly maxMs: number;
}

const pauseMs = 500;

/** Connects to each address, again until every way is as network policies want it or the time is over. */
export async function tryNetwork({ needed, closed, maxMs }: NetworkTargets): Promise<NetworkTrial> {
  const end = performance.now() + maxMs;
  for (;;) {
    const [reached, open] = await Promise.all([
      Promise.all(needed.map(isListening)),
      Promise.all(closed.map((target) => isListening(readTarget(target)))),
    ]);
    const trial = {
      missed: needed.filter((_, n) => !reached[n]).map(showAddress),
      open: closed.filter((_, n) => open[n]),
      kernel: release(),
    };
    if (trial.missed.length + trial.open.length === 0 || performance.now() > end) return trial;
    await pause(pauseMs);
  }
}

/** A connection without TLS is enough: the way is open, whatever its server speaks. */
function readTarget(target: string): ServerAddress {
  const { hostname, port } = new URL(`http://${target}`);
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 80) };
}

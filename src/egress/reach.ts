import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { isSameAddress, type Policy, type Verdict } from './policy.ts';
import type { Resolve } from './resolve.ts';

/** A host as URL writes it, and a port. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

export type Reached =
  | { readonly verdict: 'open'; readonly socket: Socket; readonly address: string }
  /** `late` tells that somebody did not answer in time. */
  | { readonly verdict: Exclude<Verdict, 'open'>; readonly late?: boolean };

export type Reach = (target: Target, signal: AbortSignal) => Promise<Reached>;

export interface ReachOptions {
  readonly policy: Policy;
  readonly resolve: Resolve;
  /** For one address, of which the first few are tried. */
  readonly attemptSeconds: number;
  readonly dial?: (options: TcpNetConnectOpts) => Socket;
}

const mostAttempts = 3;

/** Gives the only way to the world: a connection to an address that was judged, or the verdict why there is none. */
export function makeReach({ policy, resolve, attemptSeconds, dial = connect }: ReachOptions): Reach {
  return async ({ host, port }, signal) => {
    const judged = policy.judgeHost(host, port);
    if (judged.verdict === 'open') return connectToAny(judged.addresses, port);
    if (judged.verdict !== 'resolve') return judged;
    const { addresses, late } = await resolve(host, signal);
    const verdict = policy.judgeAddresses(host, addresses, port);
    return verdict === 'open' ? connectToAny(addresses, port) : { verdict, late };

    async function connectToAny(addresses: readonly string[], port: number): Promise<Reached> {
      let late = false;
      for (const address of addresses.slice(0, mostAttempts)) {
        if (signal.aborted) break;
        const socket = dial({ host: address, port, autoSelectFamily: false, allowHalfOpen: true, noDelay: true });
        const end = await waitForConnect(socket, attemptSeconds * 1000, signal);
        if (end === 'connected') return checkPeer(socket, address);
        late = end === 'late';
      }
      return { verdict: 'failed_connect', late };
    }
  };
}

/** Waits until a socket is connected, or destroys it. */
function waitForConnect(
  socket: Socket,
  limitMs: number,
  signal: AbortSignal,
): Promise<'connected' | 'late' | 'failed'> {
  return new Promise((resolve) => {
    const end = (word: 'connected' | 'late' | 'failed') => {
      clearTimeout(limit);
      signal.removeEventListener('abort', giveUp);
      if (word !== 'connected') socket.destroy();
      resolve(word);
    };
    const giveUp = () => end('failed');
    const limit = setTimeout(() => end('late'), limitMs);
    signal.addEventListener('abort', giveUp);
    socket.once('connect', () => end('connected'));
    // It stays for the socket's whole life: an error is followed by its close, which everybody watches.
    socket.on('error', giveUp);
  });
}

/** A connection counts only if it leads to the very address that was judged. */
function checkPeer(socket: Socket, address: string): Reached {
  if (isSameAddress(socket.remoteAddress ?? '', address)) return { verdict: 'open', socket, address };
  socket.destroy();
  return { verdict: 'refused_address' };
}

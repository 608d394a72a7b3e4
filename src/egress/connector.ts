import { once } from 'node:events';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { EgressRefusal } from '../base/egress-verdict.ts';
import { isSameAddress } from '../model/public-address.ts';
import type { Judgement, Policy } from './address-policy.ts';
import type { RefusalCause } from './refusal-response.ts';
import type { Resolve, Resolved } from './resolver.ts';

/** A host as URL writes it, and a port. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

export type ConnectResult =
  | { readonly verdict: 'open'; readonly socket: Socket; readonly address: string }
  | ({ readonly verdict: EgressRefusal } & RefusalCause);

export type Connect = (target: Target, signal: AbortSignal) => Promise<ConnectResult>;

export interface ConnectorOptions {
  readonly policy: Policy;
  readonly resolve: Resolve;
  /** For all attempts together, of which each has its part. */
  readonly connectSeconds: number;
  readonly dial?: Dial;
}

type Dial = (options: TcpNetConnectOpts) => Socket;

const maxAddresses = 3;

/** Returns the only function that opens sockets to the Internet: it connects to an address that was judged, or returns the verdict. */
export function makeConnector({ policy, resolve, connectSeconds, dial = connect }: ConnectorOptions): Connect {
  const judge = async ({ host, port }: Target, signal: AbortSignal): Promise<JudgedTarget> => {
    const judged = policy.judgeHost(host, port);
    if (judged.verdict !== 'resolve') return { addresses: [], late: false, ...judged };
    const resolved = await resolve(host, signal);
    return { ...resolved, verdict: policy.judgeAddresses(host, resolved.addresses, port) };
  };
  return async (target, signal) => {
    const { verdict, addresses, ...cause } = await judge(target, signal);
    if (verdict !== 'open') return { verdict, ...cause };
    return connectToAny(addresses.slice(0, maxAddresses), target.port, connectSeconds * 1000, dial, signal);
  };
}

type JudgedTarget = Resolved & { readonly verdict: Judgement };

async function connectToAny(
  addresses: readonly string[],
  port: number,
  limitMs: number,
  dial: Dial,
  signal: AbortSignal,
): Promise<ConnectResult> {
  const endMs = performance.now() + limitMs;
  let late = false;
  for (const [at, address] of addresses.entries()) {
    if (signal.aborted) break;
    const socket = dial({ host: address, port, autoSelectFamily: false, allowHalfOpen: true, noDelay: true });
    const partMs = (endMs - performance.now()) / (addresses.length - at);
    const end = await waitForConnect(socket, partMs, signal);
    if (end === 'connected') return checkPeer(socket, address);
    late = end === 'late';
  }
  return { verdict: 'failed_connect', late };
}

/** Waits until a socket is connected, or destroys it. */
async function waitForConnect(socket: Socket, limitMs: number, signal: AbortSignal) {
  // It stays for the socket's whole life: an error is followed by its close, which everybody watches.
  socket.on('error', () => {});
  const limit = AbortSignal.timeout(Math.max(0, Math.round(limitMs)));
  try {
    await once(socket, 'connect', { signal: AbortSignal.any([signal, limit]) });
    return 'connected';
  } catch {
    socket.destroy();
    return limit.aborted ? 'late' : 'failed';
  }
}

/** A connection counts only if it leads to the very address that was judged. */
function checkPeer(socket: Socket, address: string): ConnectResult {
  if (isSameAddress(socket.remoteAddress ?? '', address)) return { verdict: 'open', socket, address };
  socket.destroy();
  return { verdict: 'refused_address' };
}

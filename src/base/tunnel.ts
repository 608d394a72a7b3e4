import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Address } from './post.ts';

/** A secured connection to a server behind a proxy, or what the proxy answered instead. */
export type Tunnel =
  | { readonly is: 'open'; readonly secured: TLSSocket; readonly close: () => void }
  | { readonly is: 'refused'; readonly answer: IncomingMessage };

/** Asks a proxy for a way to the server of an https URL, whose certificate is checked before anything is sent. */
export async function openTunnel(proxy: Address, url: URL, signal: AbortSignal): Promise<Tunnel> {
  const { answer, socket } = await connectThrough(proxy, `${url.hostname}:${url.port || 443}`, signal);
  if (answer.statusCode !== 200) {
    socket.destroy();
    return { is: 'refused', answer };
  }
  try {
    const host = url.hostname.replace(/^\[|\]$|\.$/g, '');
    const named = isIP(host) ? { host } : { host, servername: host };
    const secured = connectTls({ ...named, socket, ALPNProtocols: ['http/1.1'], rejectUnauthorized: true });
    // An error that nobody waits for any more.
    secured.on('error', () => {});
    await once(secured, 'secureConnect', { signal });
    return { is: 'open', secured, close: () => socket.destroy() };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function connectThrough(
  proxy: Address,
  authority: string,
  signal: AbortSignal,
): Promise<{ answer: IncomingMessage; socket: Socket }> {
  const options = { ...proxy, method: 'CONNECT', path: authority, headers: { host: authority }, agent: false, signal };
  const asked = request(options);
  asked.end();
  const [answer, socket, head] = (await once(asked, 'connect')) as [IncomingMessage, Socket, Buffer];
  // From now on what goes wrong shows at the connection inside.
  for (const part of [asked, socket]) part.on('error', () => {});
  socket.unshift(head);
  return { answer, socket };
}

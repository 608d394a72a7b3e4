import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ServerAddress } from '../base/server-address.ts';
import { queryLengthMax } from '../model/caller-url.ts';
import type { Inspected, Inspector } from './inspector-pool.ts';

/** The inspector as its callers see it. */
export interface Inspection {
  /** The port when it listens on one, else 0. */
  readonly port: number;
  /** Takes in nothing more, and lets what is under way end within so many seconds. */
  readonly close: (drainSeconds: number) => Promise<void>;
}

const bodyBytes = 16_384;
const retrySeconds = 2;

/**
 * Answers `POST /inspect {url}` with 200 `{metadata}` or `{failure: {code, text}}`, or with 503 when it may be asked again.
 * A caller who leaves takes the child with it.
 */
export async function serveInspector(inspector: Pick<Inspector, 'inspect'>, at: ServerAddress): Promise<Inspection> {
  const server = createServer((request, response) => {
    answer(request, response, inspector).catch(() => response.destroy());
  });
  // What an earlier inspector left there when it was killed.
  if ('path' in at) await rm(at.path, { force: true });
  server.listen('path' in at ? at.path : at);
  await once(server, 'listening');
  const listening = server.address() as AddressInfo | string;
  return { port: typeof listening === 'object' ? listening.port : 0, close: (seconds) => closeServer(server, seconds) };
}

async function answer(request: IncomingMessage, response: ServerResponse, inspector: Pick<Inspector, 'inspect'>) {
  if (request.url !== '/inspect' || request.method !== 'POST') return say(response, 404, { error: 'Not Found' });
  const url = readUrl(await readBody(request));
  if (url === null) return say(response, 400, { error: 'Bad Request: a JSON object with a url is needed' });
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const inspected = await inspector.inspect(url, gone.signal);
  if (inspected.is === 'busy') response.setHeader('retry-after', retrySeconds);
  return say(response, inspected.is === 'busy' ? 503 : 200, bodyOf(inspected));
}

function bodyOf(inspected: Inspected): object {
  switch (inspected.is) {
    case 'metadata':
      return { metadata: inspected.metadata };
    case 'failure':
      return { failure: { code: inspected.code, text: inspected.text } };
    case 'busy':
      return { error: `Service Unavailable: ${inspected.reason}` };
  }
}

async function readBody(request: IncomingMessage): Promise<string | null> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request) {
    bytes += piece.length;
    if (bytes > bodyBytes) return null;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

function readUrl(body: string | null): string | null {
  try {
    const { url } = JSON.parse(body ?? '');
    return typeof url === 'string' && url.length <= queryLengthMax && /^https?:/i.test(url) ? url : null;
  } catch {
    // Not JSON, or no object: the caller is told.
    return null;
  }
}

function say(response: ServerResponse, status: number, json: object): void {
  const body = JSON.stringify(json);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

async function closeServer(server: Server, drainSeconds: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const timer = setTimeout(() => server.closeAllConnections(), drainSeconds * 1000);
  await closed;
  clearTimeout(timer);
}

import { rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeServer } from '../base/close-server.ts';
import { readBody } from '../base/read-body.ts';
import { listenAt, type ServerAddress } from '../base/server-address.ts';
import { maxUrlLength } from '../model/caller-url.ts';
import type { Inspector } from '../model/inspection-result.ts';
import { InspectorBusy } from './inspector-pool.ts';

export interface InspectorServer {
  /** The port, 0 for a socket. */
  readonly port: number;
  /** Accepts no more requests, and ends those under way after so many seconds. */
  readonly close: (drainSeconds: number) => Promise<void>;
}

const maxBodyBytes = 16_384;
const retrySeconds = 2;

/**
 * Answers `POST /inspect {url}` with 200 and an `InspectionResult`, or with 503 when the caller may ask again. A caller who
 * hangs up ends the inspection.
 */
export async function serveInspector(inspector: Inspector, at: ServerAddress): Promise<InspectorServer> {
  const server = createServer((request, response) => {
    answer(request, response, inspector).catch(() => response.destroy());
  });
  // An inspector that was killed leaves its socket.
  if ('path' in at) await rm(at.path, { force: true });
  const port = await listenAt(server, at);
  return { port, close: (drainSeconds) => closeServer(server, drainSeconds * 1000) };
}

async function answer(request: IncomingMessage, response: ServerResponse, inspector: Inspector): Promise<void> {
  if (request.url !== '/inspect' || request.method !== 'POST') return reply(response, 404, { error: 'Not Found' });
  const url = readUrl(await readBody(request, maxBodyBytes));
  if (url === null) return reply(response, 400, { error: 'Bad Request: a JSON object with a url is needed' });
  const hangUp = new AbortController();
  response.once('close', () => hangUp.abort());
  try {
    reply(response, 200, await inspector.inspect(url, hangUp.signal));
  } catch (error) {
    if (!(error instanceof InspectorBusy)) throw error;
    response.setHeader('retry-after', retrySeconds);
    reply(response, 503, { error: `Service Unavailable: ${error.message}` });
  }
}

function readUrl(body: Buffer | null): string | null {
  try {
    const { url } = JSON.parse(String(body));
    return typeof url === 'string' && url.length <= maxUrlLength && /^https?:/i.test(url) ? url : null;
  } catch {
    // Not JSON, or no object.
    return null;
  }
}

function reply(response: ServerResponse, status: number, json: object): void {
  const body = JSON.stringify(json);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

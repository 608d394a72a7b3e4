import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { closeServer } from '../base/close-server.ts';
import { membersOf, parseJson } from '../base/parse-json.ts';
import { readBody } from '../base/read-body.ts';
import { listenAt, type ServerAddress } from '../base/server-address.ts';
import { type CertificateOptions, makeHttpServer } from '../base/server-certificate.ts';
import type { Inspector } from '../model/inspection-result.ts';
import { maxUrlLength } from '../model/public-address.ts';
import { maxBatchItems } from '../model/request-limits.ts';
import { InspectorBusy, ShareUsedUp } from './inspection-slots.ts';

const maxBodyBytes = 16_384;
const retrySeconds = 2;

/**
 * Answers `POST /inspect {url, account}` with 200 and an `InspectionResult`, and `POST /list {url, maxEntries, account}` with 200
 * and a `ListingResult`; either with 429 when the account uses its share of the inspector, or with 503 when the caller may ask
 * again. A caller who hangs up ends the inspection.
 */
export async function serveInspector(
  inspector: Inspector,
  at: ServerAddress,
  certificate: CertificateOptions | null = null,
) {
  const server = makeHttpServer(certificate, {}, (request, response) => {
    answer(request, response, inspector).catch(() => response.destroy());
  });
  // An inspector that was killed leaves its socket.
  if ('path' in at) await rm(at.path, { force: true });
  return {
    /** The port, 0 for a socket. */
    port: await listenAt(server, at),
    /** Accepts no more requests, and ends those under way after so many seconds. */
    close: (drainSeconds: number) => closeServer(server, drainSeconds * 1000),
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, inspector: Inspector): Promise<void> {
  const isKnown = request.url === '/inspect' || request.url === '/list';
  if (!isKnown || request.method !== 'POST') return reply(response, 404, { error: 'Not Found' });
  const asked = readQuestion(await readBody(request, maxBodyBytes));
  if (asked === null) return reply(response, 400, { error: 'Bad Request: a JSON object with a url is needed' });
  const hangUp = new AbortController();
  response.once('close', () => hangUp.abort());
  try {
    const { url, maxEntries, account } = asked;
    const ask =
      request.url === '/list'
        ? inspector.list(url, maxEntries, account, hangUp.signal)
        : inspector.inspect(url, account, hangUp.signal);
    reply(response, 200, await ask);
  } catch (error) {
    response.setHeader('retry-after', retrySeconds);
    if (error instanceof ShareUsedUp) return reply(response, 429, { error: `Too Many Requests: ${error.message}` });
    if (!(error instanceof InspectorBusy)) throw error;
    reply(response, 503, { error: `Service Unavailable: ${error.message}` });
  }
}

function readQuestion(body: Buffer | null) {
  const { url, account, maxEntries = maxBatchItems } = membersOf(parseJson(String(body)));
  const isUrl = typeof url === 'string' && url.length <= maxUrlLength + 1 && /^https?:/i.test(url);
  const most = Number.isInteger(maxEntries) ? Number(maxEntries) : 0;
  const isCount = most >= 1 && most <= maxBatchItems;
  return isUrl && isCount && typeof account === 'string' ? { url, account, maxEntries: most } : null;
}

function reply(response: ServerResponse, status: number, json: object): void {
  const body = JSON.stringify(json);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

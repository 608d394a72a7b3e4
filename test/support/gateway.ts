import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json as readJson } from 'node:stream/consumers';
import type { Order } from '../../src/media/tools.ts';

export const token = 'token-of-this-attempt';

/** A gateway for tests, for one attempt. */
export interface TestGateway {
  readonly address: { readonly path: string };
  /** Where it takes parts as an object store does. */
  readonly storeUrl: string;
  /** `METHOD path` of every call, in order. */
  readonly calls: string[];
  readonly told: { progress: number; stage: string }[];
  readonly verdicts: Record<string, unknown>[];
  readonly objects: Map<string, Received>;
  /** What the next calls of a path are answered with, before they succeed again. */
  readonly refuse: (path: string, ...statuses: number[]) => void;
  readonly stop: () => Promise<void>;
}

interface Received {
  readonly bytes: number;
  readonly sha256: string;
  readonly type: string;
}

export interface TestGatewayOptions {
  readonly folder: string;
  readonly order: Order;
  readonly limits?: { file_bytes?: number; seconds?: number };
  /** Bytes of each part; without it the file goes to the gateway itself. */
  readonly partBytes?: number;
}

/** Starts a gateway on a socket in a folder. */
export async function startGateway({ folder, order, limits, partBytes }: TestGatewayOptions): Promise<TestGateway> {
  const calls: string[] = [];
  const told: TestGateway['told'] = [];
  const verdicts: TestGateway['verdicts'] = [];
  const objects: TestGateway['objects'] = new Map();
  const refusals = new Map<string, number[]>();
  const spec = {
    ...{ job: 'a-job', attempt: 1, ...order },
    limits: { file_bytes: 2 ** 28, seconds: 60, inspect_seconds: 50, ...limits },
  };
  const keep = async (request: IncomingMessage, key: string) => {
    const object = await receive(request);
    if (object) objects.set(key, object);
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { method, url = '' } = request;
    calls.push(`${method} ${url}`);
    const status = refusals.get(url)?.shift();
    if (status !== undefined) return response.writeHead(status).end();
    if (url.startsWith('/parts/')) {
      await keep(request, url);
      return response.writeHead(200, { etag: `"mark of ${url}"` }).end();
    }
    if (request.headers.authorization !== `Bearer ${token}`) return response.writeHead(401).end();
    const say = (json: unknown) => response.end(JSON.stringify(json));
    if (url === '/v1/attempt') return say(spec);
    if (url === '/v1/attempt/object') {
      await keep(request, 'object');
      return response.end();
    }
    const said = (await readJson(request)) as Record<string, unknown>;
    if (url === '/v1/attempt/permit')
      return say({ key: 'a-job/1/media.mp4', parts: partsOf(storeUrl, Number(said.bytes), partBytes) });
    if (url === '/v1/attempt/progress') told.push(said as TestGateway['told'][number]);
    if (url === '/v1/attempt/verdict') verdicts.push(said);
    return response.end();
  };
  const [own, store] = [0, 1].map(() => createServer((request, response) => void answer(request, response))) as [
    Server,
    Server,
  ];
  const servers = [own, store];
  const path = join(folder, 'gateway');
  await new Promise<void>((resolve) => own.listen(path, resolve));
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
  const storeUrl = `http://127.0.0.1:${(store.address() as AddressInfo).port}`;
  const stop = async () => {
    for (const server of servers) server.closeAllConnections();
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  };
  const refuse = (url: string, ...statuses: number[]) => void refusals.set(url, statuses);
  return { address: { path }, storeUrl, calls, told, verdicts, objects, refuse, stop };
}

/** Reads a body to its end; `null` when it breaks off before. */
async function receive(request: IncomingMessage): Promise<Received | null> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of request) {
    bytes += piece.length;
    hash.update(piece);
  }
  if (bytes !== Number(request.headers['content-length'])) return null;
  return { bytes, sha256: hash.digest('hex'), type: String(request.headers['content-type']) };
}

function partsOf(storeUrl: string, bytes: number, partBytes: number | undefined) {
  if (partBytes === undefined) return [];
  return Array.from({ length: Math.ceil(bytes / partBytes) }, (_, n) => {
    const size = Math.min(partBytes, bytes - n * partBytes);
    return { url: `${storeUrl}/parts/${n}`, headers: { 'x-signed': 'yes' }, bytes: size };
  });
}

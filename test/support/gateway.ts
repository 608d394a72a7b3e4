import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json as readJson } from 'node:stream/consumers';
import type { MediaOrder } from '../../src/media/tools.ts';
import type { Permit, Upload } from '../../src/objects/object-store.ts';

export const token = 'token-of-this-attempt';

/** A gateway for tests, for one attempt. */
export interface TestGateway {
  readonly address: { readonly path: string };
  /** The URL for parts, as of an object store. */
  readonly storeUrl: string;
  /** `METHOD path` of every call, in order. */
  readonly calls: string[];
  readonly told: { progress: number; stage: string }[];
  readonly verdicts: Record<string, unknown>[];
  readonly objects: Map<string, Received>;
  /** Sets the statuses of the next calls of a path, before they succeed again. */
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
  readonly order: MediaOrder;
  readonly limits?: { file_bytes?: number; seconds?: number };
  readonly cookies?: string;
  /** Bytes of each part; without it the file goes to the gateway itself. */
  readonly partBytes?: number;
  /** Gives permits of another store than the one that the gateway has itself. */
  readonly permit?: (upload: Upload) => Promise<Permit>;
}

/** Starts a gateway on a socket in a folder. */
export async function startGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const { folder, partBytes, permit } = options;
  const calls: string[] = [];
  const told: TestGateway['told'] = [];
  const verdicts: TestGateway['verdicts'] = [];
  const objects: TestGateway['objects'] = new Map();
  const refusals = new Map<string, number[]>();
  const keep = async (request: IncomingMessage, key: string) => {
    const object = await receive(request);
    if (object) objects.set(key, object);
  };
  const ownPermit = async ({ bytes }: Upload) => {
    const parts = partsOf(storeUrl, bytes, partBytes)?.filter(({ path }) => !objects.has(path)) ?? null;
    return { key: 'a-job/1/media.mp4', parts, through_egress: false };
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { method, url = '' } = request;
    calls.push(`${method} ${url}`);
    const status = refusals.get(url)?.shift();
    if (status !== undefined) return response.writeHead(status).end();
    if (url.startsWith('/parts/')) {
      await keep(request, url);
      return response.end();
    }
    if (request.headers.authorization !== `Bearer ${token}`) return response.writeHead(401).end();
    const say = (json: unknown) => response.end(JSON.stringify(json));
    if (url === '/v1/attempt') return say(specOf(options));
    if (url === '/v1/attempt/object') {
      await keep(request, 'object');
      return response.end();
    }
    const said = (await readJson(request)) as Record<string, unknown>;
    if (url === '/v1/attempt/permit') {
      // A store that is away lets nothing through.
      const given = await (permit ?? ownPermit)(said as unknown as Upload).catch(() => null);
      return given ? say(given) : response.writeHead(503).end();
    }
    if (url === '/v1/attempt/progress') told.push(said as TestGateway['told'][number]);
    if (url === '/v1/attempt/verdict') verdicts.push(said);
    return response.end();
  };
  const serve = (request: IncomingMessage, response: ServerResponse) => void answer(request, response);
  const [own, store] = [createServer(serve), createServer(serve)];
  const path = join(folder, 'gateway');
  await new Promise<void>((resolve) => own.listen(path, resolve));
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
  const storeUrl = `http://127.0.0.1:${(store.address() as AddressInfo).port}`;
  return {
    ...{ address: { path }, storeUrl, calls, told, verdicts, objects },
    refuse: (url, ...statuses) => void refusals.set(url, statuses),
    stop: () => Promise.all([own, store].map(endServer)).then(() => undefined),
  };
}

function specOf({ order, limits, partBytes, cookies }: TestGatewayOptions): object {
  return {
    ...{ job: 'a-job', attempt: 1, ...order },
    limits: { file_bytes: 2 ** 28, seconds: 60, inspect_seconds: 50, ...limits },
    part_bytes: partBytes ?? null,
    cookies: cookies ?? null,
  };
}

async function endServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
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
  if (partBytes === undefined) return null;
  return Array.from({ length: Math.ceil(bytes / partBytes) }, (_, n) => {
    const path = `/parts/${n}`;
    const start = n * partBytes;
    const size = Math.min(partBytes, bytes - start);
    return { path, url: storeUrl + path, headers: { 'x-signed': 'yes' }, start, bytes: size };
  });
}

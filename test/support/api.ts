import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { readConfig } from '../../src/base/config.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { makeShutdown } from '../../src/base/shutdown.ts';
import { readKey } from '../../src/model/api-key.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { askInspector } from '../../src/roles/inspector-client.ts';
import { type ApiParts, serveApi } from '../../src/roles/serve-api.ts';
import type { Json } from './json.ts';
import { type AccountOptions, anAccount, anotherKey, makeTestClock, type TestStore } from './record.ts';
import { aFolder, aLog, memoryFolder, startTestRedis, type TestRedis } from './redis.ts';

/** An answer as a caller sees it. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Json;
}

export interface ApiCaller {
  readonly key: string;
  readonly account: string;
  readonly slug: string;
  readonly keyId: string;
  readonly hash: string;
  readonly plan: string;
}

/** Answers a question for a URL; `gone` resolves when the API hangs up, or has its answer. */
type Inspect = (
  url: string,
  question: Readonly<Record<string, unknown>>,
  gone: Promise<void>,
) => object | null | Promise<object | null>;

/** The API with a real Redis, a folder of objects and an inspector that is a real server of the test. */
export interface TestApi {
  readonly url: string;
  readonly dashboardUrl: string;
  readonly dashboardPort: number;
  readonly redis: TestRedis;
  readonly store: TestStore;
  readonly objects: FolderStore;
  readonly lines: string[];
  readonly metrics: ReturnType<typeof makeMetrics>;
  /** Sets the answer of the inspector; it may be a promise, and `null` breaks the connection. */
  inspect(answer: Inspect): void;
  addCaller(wanted?: AccountOptions): Promise<ApiCaller>;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  get(path: string, key?: string | null, params?: Record<string, string>): Promise<Answer>;
  stop(): Promise<void>;
}

export interface CallOptions {
  readonly key?: string | null;
  readonly params?: Record<string, string>;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

/** Starts an API with these settings; a test may change its parts before. */
export async function startApi(
  env: Record<string, string> = {},
  change: (parts: ApiParts) => ApiParts = (parts) => parts,
): Promise<TestApi> {
  const { folder, remove } = aFolder();
  const { lines, log } = aLog();
  // `strict` asks for fsync at each change.
  const redis = await startTestRedis({ fsync: 'always' }, memoryFolder, {});
  const metrics = makeMetrics();
  const store: TestStore = { connection: redis.connection, ...makeTestClock() };
  const config = readConfig({ TRAWL_PORT: '0', TRAWL_DASHBOARD_PORT: '0', TRAWL_DATA: folder, ...env });
  const seal = makeSeal({ secret: config.secret ?? randomBytes(32), old: null });
  const objects = await openFolder({ folder: join(folder, 'objects'), seal, now: store.clock.now });
  const socketPath = join(folder, 'inspector.sock');
  let answer: Inspect = (url, { maxEntries }) => (maxEntries === undefined ? { metadata: aFilm } : { entries: [url] });
  const inspector = await serveInspector(socketPath, (...asked) => answer(...asked));
  const stop = makeShutdown();
  const shared = { config, store, seal, objects, log, metrics, traces: null };
  const parts = { ...shared, inspector: askInspector({ path: socketPath }) };
  const api = await serveApi(change(parts), stop);
  const url = `http://127.0.0.1:${api.port}`;
  const { dashboardUrl, dashboardPort } = api;
  const call = (method: string, path: string, options: CallOptions = {}) => ask(url, method, path, options);
  return {
    url,
    dashboardUrl,
    dashboardPort: dashboardPort ?? 0,
    redis,
    store,
    objects,
    lines,
    metrics,
    inspect: (next) => {
      answer = next;
    },
    addCaller: (wanted = {}) => aCaller(store, wanted),
    call,
    get: (path, key, params) => call('GET', path, { ...(key ? { key } : {}), ...(params ? { params } : {}) }),
    async stop() {
      try {
        await stop.run();
      } finally {
        inspector.closeAllConnections();
        await new Promise((resolve) => inspector.close(resolve));
        await redis.stop();
        remove();
      }
    },
  };
}

async function aCaller(store: TestStore, { quotas, ...wanted }: AccountOptions): Promise<ApiCaller> {
  const { accountId, slug, plan } = await anAccount(store, { credits: 100, ...wanted });
  const key = await anotherKey(store, accountId, quotas);
  const { keyId, hash } = readKey(key)!;
  return { key, account: accountId, slug, plan, keyId, hash };
}

async function ask(url: string, method: string, path: string, options: CallOptions): Promise<Answer> {
  const query = options.params ? `?${new URLSearchParams(options.params)}` : '';
  const json = options.body !== undefined && typeof options.body !== 'string';
  const response = await fetch(`${url}${path}${query}`, {
    method,
    redirect: 'manual',
    headers: {
      ...(options.key ? { 'x-api-key': options.key } : {}),
      ...(json ? { 'content-type': 'application/json' } : {}),
      ...options.headers,
    },
    ...(options.body === undefined ? {} : { body: json ? JSON.stringify(options.body) : String(options.body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== '';
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : null };
}

/** The 19 fields of a film that the inspector tells of. */
export const aFilm = {
  id: 'f1',
  ext: 'mp4',
  title: 'A film',
  width: 1280,
  height: 720,
  channel: 'A channel',
  channel_url: 'https://example.com/c',
  is_live: false,
  was_live: false,
  live_status: 'not_live',
  duration: 61.5,
  extractor: 'generic',
  thumbnail: 'https://example.com/t.jpg',
  like_count: 5,
  view_count: 7,
  description: 'Words',
  upload_date: 20260102,
  webpage_url: 'https://example.com/film',
  original_url: 'https://example.com/film',
};

async function serveInspector(socketPath: string, answer: Inspect): Promise<Server> {
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const question = JSON.parse(Buffer.concat(chunks).toString());
    const gone = new Promise<void>((resolve) => res.once('close', resolve));
    const said = await answer(question.url, question, gone);
    if (said === null) return void req.socket.destroy();
    const status = 'status' in said ? Number(said.status) : 200;
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return server;
}

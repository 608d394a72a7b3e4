import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { registerHooks } from 'node:module';
import type { AddressInfo } from 'node:net';
import { readConfig } from '../../src/base/config.ts';
import { makeLog } from '../../src/base/log.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { makeShutdown } from '../../src/base/shutdown.ts';
import { readKey } from '../../src/model/api-key.ts';
import { parseRequest } from '../../src/model/request-parameters.ts';
import { openFolder } from '../../src/objects/folder-store.ts';
import { askInspector } from '../../src/roles/inspector-client.ts';
import { openTraces } from '../../src/roles/open-traces.ts';
import { admitJoined } from '../../src/store/access/join-calls.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import { connect } from '../../src/store/redis/connection.ts';
import type { RecordStore } from '../../src/store/script.ts';

const [mode = '', given = '', folder = '', tracesUrl = ''] = process.argv.slice(2);
const log = makeLog({ level: 'error', write: (line) => process.stderr.write(line), now: Date.now });

/** Takes the lines of traces out of the API as it is loaded: what it would cost if it had none. */
function leaveOutTraces(): void {
  const lines = [
    [/server\.traces && route\?\.isTraced \? beginTrace\([^\n]*\) : null/, 'null'],
    [/^ *if \(server\.traces && call\.trace\)[^\n]*$/m, ''],
  ] as const;
  registerHooks({
    load(url, context, load) {
      const loaded = load(url, context);
      if (!url.endsWith('/src/api/app.ts')) return loaded;
      const source = lines.reduce((text, [line, instead]) => {
        if (!line.test(text)) throw new Error(`The API has no line like ${line}`);
        return text.replace(line, instead);
      }, String(loaded.source));
      return { ...loaded, source };
    },
  });
}

/** Bare node:http, which gives the same answer to everything. */
function answerBare(answer: string) {
  const { status, headers, body } = JSON.parse(answer) as { status: number; headers: [string, string][]; body: string };
  const named = Object.fromEntries(headers);
  return (_req: IncomingMessage, res: ServerResponse) => res.writeHead(status, named).end(body);
}

/** The least work of an admission: key, parameters, one script, JSON, one line of the request log. */
function answerPlain(store: RecordStore) {
  const lines = openRequestLog(store, 10_000, log);
  return async (req: IncomingMessage, res: ServerResponse) => {
    const began = performance.now();
    const key = readKey(req.headers['x-api-key']);
    const given = Object.fromEntries(new URLSearchParams(req.url?.split('?')[1]));
    const asked = parseRequest('video', given, []);
    if (key === null || !asked.ok) return res.writeHead(400).end();
    const work = {
      endpoint: 'video',
      method: 'GET',
      path: '/v1/video/download',
      args: asked.args,
      ip: '',
      webhook: null,
    } as const;
    const answer = await admitJoined(store, key, { id: randomUUID(), valid: true, isOpen: true, repeat: null, work });
    const text = JSON.stringify({ job_id: 'admitted' in answer ? answer.admitted : null });
    res.writeHead(202, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
    const line = { endpoint: 'GET /v1/video/download', status: 202, ip: '127.0.0.1', credits: 0 };
    lines.add(key, { at: Date.now(), duration_ms: Math.round(performance.now() - began), ...line });
    return res;
  };
}

async function serve(): Promise<number> {
  if (mode === 'bare') return listen(answerBare(given));
  const connection = await connect(given, { log });
  const metrics = makeMetrics();
  const store: RecordStore = {
    connection,
    clock: { now: Date.now, offset: () => 0 },
    durations: metrics.redis_seconds,
  };
  if (mode === 'plain') return listen(answerPlain(store));
  const seal = makeSeal({ secret: randomBytes(32), old: null });
  const objects = await openFolder({ folder, seal, now: Date.now });
  const inspector = askInspector({ path: `${folder}/none` });
  // The Redis of a bench writes no file, which strict would not admit to.
  const ports = { TRAWL_PORT: '0', TRAWL_DASHBOARD_PORT: '0' };
  const config = readConfig({ ...ports, TRAWL_DURABILITY: 'relaxed', TRAWL_TRACES_URL: tracesUrl });
  const stop = makeShutdown();
  const traces = await openTraces({ config, log, metrics, stop });
  const parts = { config, store, seal, objects, inspector, log, metrics, traces };
  if (mode === 'untraced') leaveOutTraces();
  // Loaded only here, so that what is left out of it is.
  const { serveApi } = await import('../../src/roles/serve-api.ts');
  const { port, dashboardPort } = await serveApi(parts, stop);
  return mode === 'dashboard' ? dashboardPort! : port;
}

function listen(answer: (req: IncomingMessage, res: ServerResponse) => unknown): Promise<number> {
  const server = createServer(answer);
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

// Each line of input is answered with the number of bytes in use.
process.stdin.on('data', () => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  console.log(heapUsed + external);
});
process.stdin.on('end', () => process.exit());
console.log(await serve());

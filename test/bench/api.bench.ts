import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readKey } from '../../src/model/api-key.ts';
import { admitted, anotherKey, storeOf } from '../support/record.ts';
import { aBusyAccount, withRedis } from './bench-redis.ts';
import { checkLoad, cpuMicros, keepAside, type LoadRequest, load, type ServerProcess, serve } from './load.ts';
import type { Measurement } from './measurement.ts';
import { holdStreams } from './streams.ts';

const rounds = 9;
/** Express as it is, without swapped prototypes and prepared headers, for code that reads as Express (decision 8). */
const maxTimesBare = 3;
const connections = 64;
const seconds = 1;
/** V8 compiles the API again and again until about then, and that would be counted. */
const warmRequests = 40_000;
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** CPU time per request of the server process, beside a bare node:http server and the same work without Express. */
export async function* measure(): AsyncGenerator<Measurement> {
  await checkLoad();
  const folder = mkdtempSync(join(tmpdir(), 'trawl-bench-'));
  try {
    yield* await withRedis({}, (redis) => measureWith(redis, folder));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

type Redis = Parameters<Parameters<typeof withRedis>[1]>[0];

async function measureWith(redis: Redis, folder: string): Promise<Measurement[]> {
  await keepAside(redis.pid());
  // While Redis waits for the disk the server would be idle, and an idle one costs more per request.
  await redis.connection.send(['CONFIG', 'SET', 'appendonly', 'no']);
  const store = storeOf(redis.connection);
  const { accountId } = await aBusyAccount(store);
  const key = await anotherKey(store, accountId);
  const own = await ownJob(store, accountId);
  const admit = { key, path: '/v1/video/download?query=https%3A%2F%2Fexample.com%2Fwatch%3Fv%3Dabc&video_format=mp4' };
  const poll = { key, path: `/v1/jobs/${own}` };
  const start = (mode: string, ...more: string[]) => serve(mode, redis.url, join(folder, 'objects'), ...more);
  const api = await start('api');
  const collector = await serve('bare', JSON.stringify({ status: 200, headers: [], body: '' }));
  const tracesUrl = `http://127.0.0.1:${collector.port}/v1/traces`;
  const servers = {
    admit: api,
    poll: api,
    plain: await serve('plain', redis.url),
    bareAdmit: await serve('bare', await answerOf(api, admit)),
    barePoll: await serve('bare', await answerOf(api, poll)),
    idle: await start('api'),
  };
  try {
    const cost = await costs(servers, { admit, poll, plain: admit, bareAdmit: admit, barePoll: poll });
    const wide = await widths(api, admit);
    const streams = await holdStreams(servers.idle, await eventsOfAccounts(store), 1000);
    const traced = await together([await start('api', tracesUrl), await start('api')], admit);
    const untraced = await together([await start('api'), await start('untraced')], admit);
    return [
      { what: 'admit / bare node:http, CPU', bound: { most: maxTimesBare }, ...beside(cost.admit, cost.bareAdmit) },
      { what: 'admit / the same without Express, CPU', bound: { most: 1.4 }, ...beside(cost.admit, cost.plain) },
      { what: 'poll / bare node:http, CPU', bound: { most: maxTimesBare }, ...beside(cost.poll, cost.barePoll) },
      { what: 'admit with traces / without, CPU', ...traced },
      {
        what: 'admit without traces / with their lines left out of the API, CPU',
        bound: { most: 1.05 },
        ...untraced,
      },
      { what: 'rate at 512 connections / at 64', ratio: wide, bound: { least: 0.75 }, because: 'median of rounds' },
      {
        what: 'KB of memory for each of 1,000 idle event streams',
        ratio: streams.kilobytes,
        bound: { most: 30 },
        because: 'heap and buffers, after a collection',
      },
      { what: 'CPU of 1,000 idle streams, % of one core', ratio: streams.percent, because: 'their re-read every 15 s' },
    ];
  } finally {
    for (const server of new Set([...Object.values(servers), collector])) await server.stop();
  }
}

/** Requests for events, each of an account of its own: an account may have 100 streams. */
async function eventsOfAccounts(store: ReturnType<typeof storeOf>): Promise<LoadRequest[]> {
  const requests = [];
  for (let n = 0; n < 20; n++) {
    const { accountId } = await aBusyAccount(store);
    const path = `/v1/jobs/${await ownJob(store, accountId)}/events`;
    requests.push({ key: await anotherKey(store, accountId), path });
  }
  return requests;
}

async function ownJob(store: ReturnType<typeof storeOf>, account: string): Promise<string> {
  const caller = readKey(await anotherKey(store, account));
  if (!caller) throw new Error('a fresh key cannot be read');
  return admitted(store, caller);
}

/** An answer of the API, which a bare server then gives to every request. */
async function answerOf({ port }: ServerProcess, { path, key }: LoadRequest): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'x-api-key': key } });
  // Node writes these by itself.
  const own = ['connection', 'date', 'keep-alive'];
  const headers = [...answer.headers].filter(([name]) => !own.includes(name));
  return JSON.stringify({ status: answer.status, headers, body: await answer.text() });
}

/** CPU microseconds per request in each round. Rounds alternate: whatever else the machine does falls on all of them. */
async function costs<const N extends string>(
  servers: Readonly<Record<NoInfer<N>, ServerProcess>>,
  questions: Readonly<Record<N, LoadRequest>>,
): Promise<Record<N, number[]>> {
  const names = Object.keys(questions) as N[];
  const seen = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<N, number[]>;
  for (const name of names) await warmUp(servers[name], questions[name]);
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      seen[name].push(await costOf(servers[name], questions[name]));
    }
  }
  return seen;
}

/**
 * Asks two servers of nearly the same code at the same time, stops both and returns their ratio: what the machine does beside them falls
 * on both, where rounds that alternate differ by more than such servers do.
 */
async function together(servers: readonly [ServerProcess, ServerProcess], question: LoadRequest) {
  const seen: [number[], number[]] = [[], []];
  try {
    await Promise.all(servers.map((server) => warmUp(server, question)));
    for (let round = 0; round < rounds; round++) {
      const costs = await Promise.all(servers.map((server) => costOf(server, question)));
      for (const [n, micros] of costs.entries()) seen[n]!.push(micros);
    }
  } finally {
    for (const server of servers) await server.stop();
  }
  return beside(...seen);
}

async function costOf({ pid, port }: ServerProcess, question: LoadRequest): Promise<number> {
  const before = cpuMicros(pid);
  const { requests } = await load(port, question, connections, seconds);
  return (cpuMicros(pid) - before) / requests;
}

async function warmUp({ port }: ServerProcess, question: LoadRequest): Promise<void> {
  for (let sent = 0; sent < warmRequests; ) sent += (await load(port, question, connections, seconds)).requests;
}

/** The middle one of the ratios of the rounds. */
function beside(ours: readonly number[], theirs: readonly number[]): { ratio: number; because: string } {
  const because = `${median(ours).toFixed(1)} µs : ${median(theirs).toFixed(1)} µs a request`;
  return { ratio: median(ours.map((micros, n) => micros / (theirs[n] ?? Number.NaN))), because };
}

/** Returns the ratio of the rates with eight times as many connections. */
async function widths({ port }: ServerProcess, question: LoadRequest): Promise<number> {
  const ratios = [];
  for (let round = 0; round < rounds; round++) {
    const narrow = await load(port, question, connections, seconds);
    const wide = await load(port, question, 8 * connections, seconds);
    ratios.push(wide.perSecond / narrow.perSecond);
  }
  return median(ratios);
}

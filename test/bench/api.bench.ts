import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readKey } from '../../src/model/api-key.ts';
import { anotherKey } from '../support/api.ts';
import { admitted, storeOf } from '../support/record.ts';
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
  const start = (mode: string, tracesUrl = '') => serve(mode, redis.url, join(folder, 'objects'), tracesUrl);
  const collector = await serve('bare', JSON.stringify({ status: 200, headers: [], body: '' }));
  const api = await start('api');
  try {
    const answers = { admit: await answerOf(api, admit), poll: await answerOf(api, poll) };
    const both = [admit, poll];
    const starts: Record<Contender, Start> = {
      api: () => warm(start('api'), both),
      traced: () => warm(start('api', `http://127.0.0.1:${collector.port}/v1/traces`), both),
      untraced: () => warm(start('untraced'), both),
      forgetful: () => warm(start('forgetful'), both),
      plain: () => warm(start('plain'), [admit]),
      bareAdmit: () => warm(serve('bare', answers.admit), both),
      barePoll: () => warm(serve('bare', answers.poll), both),
    };
    return [
      ...(await rowsOfRequests((ours, theirs, request) => costs(starts[ours], starts[theirs], request), admit, poll)),
      ...(await rowsOfWidth(api, admit)),
      ...(await rowsOfStreams(api, await eventsOfAccounts(store))),
    ];
  } finally {
    for (const server of [collector, api]) await server.stop();
  }
}

type Contender = 'api' | 'traced' | 'untraced' | 'forgetful' | 'plain' | 'bareAdmit' | 'barePoll';
type Start = () => Promise<ServerProcess>;
type Beside = (ours: Contender, theirs: Contender, request: LoadRequest) => ReturnType<typeof costs>;

async function rowsOfRequests(beside: Beside, admit: LoadRequest, poll: LoadRequest): Promise<Measurement[]> {
  const remembering = { optimisation: 'src/api/connection-memory.ts', bound: { least: 1.1 } };
  return [
    {
      what: 'admit / bare node:http, CPU',
      bound: { most: maxTimesBare },
      ...(await beside('api', 'bareAdmit', admit)),
    },
    {
      what: 'admit / the same without Express, CPU',
      bound: { most: 1.4 },
      ...(await beside('api', 'plain', admit)),
    },
    { what: 'poll / bare node:http, CPU', bound: { most: maxTimesBare }, ...(await beside('api', 'barePoll', poll)) },
    {
      what: 'admit, key and address read each time : once a connection, CPU',
      ...remembering,
      ...(await beside('forgetful', 'api', admit)),
    },
    {
      what: 'poll, key and address read each time : once a connection, CPU',
      ...remembering,
      ...(await beside('forgetful', 'api', poll)),
    },
    { what: 'admit with traces / without, CPU', ...(await beside('traced', 'api', admit)) },
    {
      what: 'admit without traces / with their lines left out of the API, CPU',
      bound: { most: 1.05 },
      ...(await beside('api', 'untraced', admit)),
    },
  ];
}

async function rowsOfStreams(server: ServerProcess, events: readonly LoadRequest[]): Promise<Measurement[]> {
  const { kilobytes, percent } = await holdStreams(server, events, 1000);
  return [
    {
      what: 'KB of memory for each of 1,000 idle event streams',
      ratio: kilobytes,
      bound: { most: 30 },
      because: 'heap and buffers, after a collection',
    },
    { what: 'CPU of 1,000 idle streams, % of one core', ratio: percent, because: 'their re-read every 15 s' },
  ];
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

/**
 * The middle ratio of the CPU time per request of two servers that are as old as each other and are asked at the same time: what
 * else the machine does falls on both, and V8 compiles a server anew that has been idle.
 */
async function costs(startOurs: Start, startTheirs: Start, request: LoadRequest) {
  const servers = await Promise.all([startOurs(), startTheirs()]);
  const [ours, theirs]: [number[], number[]] = [[], []];
  try {
    for (let round = 0; round < rounds; round++) {
      const [one, other] = await Promise.all(servers.map((server) => costOf(server, request)));
      ours.push(one!);
      theirs.push(other!);
    }
  } finally {
    for (const server of servers) await server.stop();
  }
  const because = `${median(ours).toFixed(1)} µs : ${median(theirs).toFixed(1)} µs a request`;
  return { ratio: median(ours.map((micros, n) => micros / (theirs[n] ?? Number.NaN))), because };
}

/** Returns the CPU microseconds per request of a server that is asked for some seconds. */
async function costOf({ pid, port }: ServerProcess, request: LoadRequest): Promise<number> {
  const before = cpuMicros(pid);
  const { requests } = await load(port, request, connections, seconds);
  return (cpuMicros(pid) - before) / requests;
}

async function warm(starting: Promise<ServerProcess>, requests: readonly LoadRequest[]): Promise<ServerProcess> {
  const server = await starting;
  for (let sent = 0; sent < warmRequests; ) {
    for (const request of requests) sent += (await load(server.port, request, connections, seconds)).requests;
  }
  return server;
}

async function rowsOfWidth({ port }: ServerProcess, request: LoadRequest): Promise<Measurement[]> {
  const ratios = [];
  for (let round = 0; round < rounds; round++) {
    const narrow = await load(port, request, connections, seconds);
    const wide = await load(port, request, 8 * connections, seconds);
    ratios.push(wide.perSecond / narrow.perSecond);
  }
  const bound = { least: 0.75 };
  return [{ what: 'rate at 512 connections / at 64', ratio: median(ratios), bound, because: 'median of rounds' }];
}

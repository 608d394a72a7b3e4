import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readKey } from '../../src/model/key.ts';
import { anotherKey } from '../support/api.ts';
import { admitted, anAccount, storeOf } from '../support/record.ts';
import { cpuMicros, load, residentBytes, type Served, serve } from './load.ts';
import type { Measured } from './measured.ts';
import { withRedis } from './scene.ts';
import { holdStreams } from './streams.ts';

const rounds = 5;
const requests = 4000;
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** CPU time per request of the server process, beside a bare node:http server and the same work without Express. */
export async function* measure(): AsyncGenerator<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-bench-'));
  try {
    yield* await withRedis({}, (redis) => measureWith(redis, folder));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

type Redis = Parameters<Parameters<typeof withRedis>[1]>[0];

async function measureWith(redis: Redis, folder: string): Promise<Measured[]> {
  const store = storeOf(redis.connection);
  const { account } = await anAccount(store, { credits: 100_000_000, max_open: 1_000_000 });
  const key = await anotherKey(store, account);
  const own = await ownJob(store, account);
  const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\n\r\n`;
  const admit = ask('/v1/video/download?query=https%3A%2F%2Fexample.com%2Fwatch%3Fv%3Dabc&video_format=mp4');
  const servers = {
    bare: await serve('bare'),
    plain: await serve('plain', redis.url),
    api: await serve('api', redis.url, join(folder, 'objects')),
  };
  try {
    const cost = await costs(servers, { admit, poll: ask(`/v1/jobs/${own}`) });
    const wide = await widths(servers.api, admit);
    const streams = await holdStreams(servers.api, ask(`/v1/jobs/${own}/events`), 1000, residentBytes, cpuMicros);
    const per = (micros: number) => `${micros.toFixed(1)} µs`;
    return [
      {
        what: 'admit / bare node:http, CPU',
        ratio: cost.admit / cost.bare,
        bound: { most: 2.5 },
        because: `${per(cost.admit)} and ${per(cost.bare)} a request`,
      },
      {
        what: 'admit / the same without Express, CPU',
        ratio: cost.admit / cost.plain,
        bound: { most: 1.4 },
        because: `${per(cost.plain)} without`,
      },
      {
        what: 'poll / bare node:http, CPU',
        ratio: cost.poll / cost.bare,
        bound: { most: 2.2 },
        because: per(cost.poll),
      },
      { what: 'rate at 512 connections / at 64', ratio: wide, bound: { least: 0.75 }, because: 'median of rounds' },
      {
        what: 'KB of memory for each of 1,000 idle event streams',
        ratio: streams.kilobytes,
        bound: { most: 30 },
        because: 'after a collection',
      },
      { what: 'CPU of 1,000 idle streams, % of one core', ratio: streams.percent, because: 'their re-read every 15 s' },
    ];
  } finally {
    for (const server of Object.values(servers)) await server.stop();
  }
}

async function ownJob(store: ReturnType<typeof storeOf>, account: string): Promise<string> {
  const caller = readKey(await anotherKey(store, account));
  if (!caller) throw new Error('a fresh key cannot be read');
  return admitted(store, caller);
}

/** Medians of CPU microseconds per request over interleaved rounds. */
async function costs(servers: Record<'bare' | 'plain' | 'api', Served>, ask: { admit: string; poll: string }) {
  const runs = [
    ['bare', servers.bare, ask.admit],
    ['plain', servers.plain, ask.admit],
    ['admit', servers.api, ask.admit],
    ['poll', servers.api, ask.poll],
  ] as const;
  const seen: Record<string, number[]> = {};
  for (let round = -1; round < rounds; round++) {
    for (const [name, server, request] of runs) {
      const before = cpuMicros(server.pid);
      await load(server.port, request, 64, requests);
      // The first round warms up.
      if (round >= 0) seen[name] = [...(seen[name] ?? []), (cpuMicros(server.pid) - before) / requests];
    }
  }
  const of = (name: string) => median(seen[name] ?? []);
  return { bare: of('bare'), plain: of('plain'), admit: of('admit'), poll: of('poll') };
}

/** How the rate holds when there are eight times as many connections. */
async function widths(server: Served, request: string): Promise<number> {
  const ratios = [];
  for (let round = 0; round < rounds; round++) {
    const narrow = await load(server.port, request, 64, requests);
    const wide = await load(server.port, request, 512, requests);
    ratios.push(narrow / wide);
  }
  return median(ratios);
}

import type { RefusalCode } from '../base/errors.ts';
import type { Endpoint } from './job.ts';

/** The engines and the endpoint paths of each, as the contract spells them (D51). */
export const catalogue = {
  video: ['/v1/video/download'],
  audio: ['/v1/audio/download'],
  media: ['/v1/media/metadata'],
} as const satisfies Record<string, readonly string[]>;

export type Engine = keyof typeof catalogue;

/** The endpoint whose ended calls make up the health of each engine. */
export const endpointsOfEngines: Readonly<Record<Engine, Endpoint>> = {
  video: 'video',
  audio: 'audio',
  media: 'metadata',
};

export type JudgedStats =
  | { readonly ok: true; readonly engine: Engine; readonly path: string | null }
  | { readonly ok: false; readonly code: RefusalCode; readonly sentence: string };

/** Calls of one engine or path within one minute (D52). */
export interface MinuteBucket {
  /** Whole minutes since 1970. */
  readonly minute: number;
  readonly count: number;
  /** Those of `count` that are no failure: everything but HTTP 5xx. */
  readonly good: number;
  /** Those of `count` that took at most 60 s. */
  readonly timed: number;
  readonly milliseconds: number;
  /** Those of `count` that ran, however long, and the milliseconds for which they ran. */
  readonly runs: number;
  readonly runMs: number;
}

const owners: ReadonlyMap<string, Engine> = new Map(
  Object.keys(catalogue)
    .filter(isEngine)
    .flatMap((engine) => catalogue[engine].map((path) => [path, engine] as const)),
);
const windowMinutes = 60;
const enoughCalls = 20;
const operationalPercent = 90;
const degradedPercent = 50;

export function judgeStats(engine: string | undefined, path: string | undefined): JudgedStats {
  if (engine !== undefined) {
    if (engine === '') return bad(`engine must be one of ${Object.keys(catalogue).join(', ')}`);
    if (!isEngine(engine)) return { ok: false, code: 'not_found', sentence: 'Not Found' };
    if (path === undefined) return { ok: true, engine, path: null };
  } else if (path === undefined) return bad('engine or path is required');
  const plain = path.replace(/^\/api(?=\/)/, '');
  const owner = owners.get(plain);
  if (owner === undefined || (engine !== undefined && engine !== owner)) {
    const fitting = engine === undefined ? [...owners.keys()] : catalogue[engine];
    return bad(`path must be ${fitting.length > 1 ? 'one of ' : ''}${fitting.join(', ')}`);
  }
  return { ok: true, engine: owner, path: plain };
}

/** Returns the health of the last hour from the buckets that lie in it (D53, D54). `now` is in milliseconds. */
export function healthOf(engine: Engine, path: string | null, buckets: readonly MinuteBucket[], now: number) {
  const first = Math.floor(now / 60_000) - windowMinutes + 1;
  const sum = { count: 0, good: 0, timed: 0, milliseconds: 0 };
  for (const bucket of buckets) {
    if (bucket.minute < first) continue;
    sum.count += bucket.count;
    sum.good += bucket.good;
    sum.timed += bucket.timed;
    sum.milliseconds += bucket.milliseconds;
  }
  const rate = rateOf(sum.count, sum.good);
  return {
    engine,
    path,
    health: rate >= operationalPercent ? 'operational' : rate >= degradedPercent ? 'degraded' : 'down',
    success_rate: rate,
    avg_response_time_ms: sum.timed === 0 ? 0 : Math.round(sum.milliseconds / sum.timed),
    window: '1h',
  };
}

/** Percent with one decimal. A quiet hour is filled up with good calls, so that one failure alone is no outage. */
function rateOf(count: number, good: number): number {
  const filled = Math.max(count, enoughCalls);
  return Math.round((1000 * (good + filled - count)) / filled) / 10;
}

function isEngine(word: string): word is Engine {
  return Object.hasOwn(catalogue, word);
}

function bad(rest: string): JudgedStats {
  return { ok: false, code: 'bad_request', sentence: `Bad Request: ${rest}` };
}

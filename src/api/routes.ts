import type { Endpoint } from '../model/job.ts';

type Method = 'GET' | 'POST' | 'DELETE';

/** One operation of the API; the first path is the one of the contract. */
export interface Route {
  readonly name: string;
  readonly paths: readonly [string, ...string[]];
  readonly methods: readonly Method[];
  /** Set when a call costs a credit: then HEAD and prefetch are refused (D3). */
  readonly endpoint?: Endpoint;
  readonly text: string;
}

const job = ['/v1/jobs/:id', '/api/v1/jobs/:id', '/jobs/:id'] as const;

/** Routes that need a key, with all their aliases (D13). */
export const keyedRoutes = {
  video: {
    name: 'video',
    paths: ['/v1/video/download', '/api/v1/video/download'],
    methods: ['GET', 'POST'],
    endpoint: 'video',
    text: 'Starts a video download. It costs one credit when it completes.',
  },
  audio: {
    name: 'audio',
    paths: ['/v1/audio/download', '/api/v1/audio/download'],
    methods: ['GET', 'POST'],
    endpoint: 'audio',
    text: 'Starts an audio download. It costs one credit when it completes.',
  },
  metadata: {
    name: 'metadata',
    paths: ['/v1/media/metadata', '/api/v1/media/metadata'],
    methods: ['GET', 'POST'],
    endpoint: 'metadata',
    text: 'Tells what is known of a media URL, without downloading the file. It costs one credit.',
  },
  jobs: {
    name: 'jobs',
    paths: ['/v1/jobs', '/api/v1/jobs'],
    methods: ['GET'],
    text: "Lists the account's jobs, newest first.",
  },
  job: {
    name: 'job',
    paths: job,
    methods: ['GET', 'DELETE'],
    text: 'Shows a job; DELETE cancels it, or removes the file of one that has ended.',
  },
  retry: {
    name: 'retry',
    paths: ['/v1/jobs/:id/retry', '/api/v1/jobs/:id/retry'],
    methods: ['POST'],
    text: 'Starts a new job with the parameters of one that has ended.',
  },
  events: {
    name: 'events',
    paths: ['/v1/jobs/:id/events', '/api/v1/jobs/:id/events'],
    methods: ['GET'],
    text: 'Streams the changes of a job as server-sent events until it ends.',
  },
  usage: {
    name: 'usage',
    paths: ['/v1/usage', '/api/v1/usage', '/api/usage'],
    methods: ['GET'],
    text: 'Tells the balances, the limits and the calling key.',
  },
  stats: {
    name: 'stats',
    paths: ['/v1/stats', '/api/v1/stats'],
    methods: ['GET'],
    text: 'Tells the health of an engine or a path in the last hour, over all accounts.',
  },
} as const satisfies Record<string, Route>;

/** Routes that need no key. */
export const openRoutes = {
  files: {
    name: 'files',
    paths: ['/files/:job/:name'],
    methods: ['GET'],
    text: 'Delivers the file of a completed job. The link is signed and needs no key.',
  },
  openapi: {
    name: 'openapi',
    paths: ['/openapi.json'],
    methods: ['GET'],
    text: 'This document.',
  },
} as const satisfies Record<string, Route>;

/** Every route: the router, the OpenAPI document and the tests read this table. */
export const routes = { ...keyedRoutes, ...openRoutes };

export type RouteName = keyof typeof routes;

/** Returns the path with `{id}` in place of Express's `:id`, as the request log and OpenAPI spell it. */
export function pathTemplate(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

/** Returns the methods of a route as its Allow header lists them; every route answers OPTIONS besides. */
export function allowedMethods({ methods, endpoint }: Route): string[] {
  return methods.includes('GET') && endpoint === undefined ? [...methods, 'HEAD'] : [...methods];
}

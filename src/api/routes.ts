import type { Endpoint } from '../model/job.ts';

type Method = 'GET' | 'POST' | 'DELETE';

/** One operation: its paths, the contract's own first, and what it does. */
export interface Route {
  readonly name: string;
  readonly paths: readonly [string, ...string[]];
  readonly methods: readonly Method[];
  /** A call that costs a credit: no HEAD, no prefetch. */
  readonly endpoint?: Endpoint;
  /** Answers without a key. */
  readonly isOpen?: true;
  readonly text: string;
}

const job = ['/v1/jobs/:id', '/api/v1/jobs/:id', '/jobs/:id'] as const;

/** Every route with all its aliases (D13): the router, the OpenAPI document and the docs are made from this. */
export const routes = {
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
  files: {
    name: 'files',
    paths: ['/files/:job/:name'],
    methods: ['GET'],
    isOpen: true,
    text: 'Delivers the file of a completed job. The link is signed and needs no key.',
  },
  openapi: {
    name: 'openapi',
    paths: ['/openapi.json'],
    methods: ['GET'],
    isOpen: true,
    text: 'This document.',
  },
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof routes;

/** Methods that a route answers to, as the Allow header lists them. */
export function allowed(route: Route): string[] {
  const head = route.methods.includes('GET') && route.endpoint === undefined;
  return [...route.methods, ...(head ? ['HEAD'] : []), ...(route.endpoint === undefined ? ['OPTIONS'] : [])];
}

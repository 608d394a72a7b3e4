import type { Endpoint } from '../model/job.ts';

type Method = 'GET' | 'POST' | 'DELETE';

/** One operation of the API; the first path is the one of the contract. */
export interface Route {
  readonly name: string;
  readonly paths: readonly [string, ...string[]];
  readonly methods: readonly Method[];
  /** Set when a call costs a credit: then HEAD and prefetch are refused (D3). */
  readonly endpoint?: Endpoint;
  /** Largest body; 16 KiB unless given. */
  readonly maxBodyBytes?: number;
  /** True when the body is read after the key and the rate were judged; the key is not in it. */
  readonly readsBodyLate?: true;
  /** True when a call may start work: it begins a trace, where traces are sent. */
  readonly isTraced?: true;
  /** True when the key may also come as `Authorization: Bearer`. */
  readonly takesBearer?: true;
}

/** Routes that need a key, with all their aliases (D13). */
export const keyedRoutes = named({
  video: { paths: aliased('/v1/video/download'), methods: ['GET', 'POST'], endpoint: 'video', isTraced: true },
  audio: { paths: aliased('/v1/audio/download'), methods: ['GET', 'POST'], endpoint: 'audio', isTraced: true },
  metadata: { paths: aliased('/v1/media/metadata'), methods: ['GET', 'POST'], endpoint: 'metadata', isTraced: true },
  jobs: { paths: aliased('/v1/jobs'), methods: ['GET'] },
  job: { paths: [...aliased('/v1/jobs/:id'), '/jobs/:id'], methods: ['GET', 'DELETE'] },
  retry: { paths: aliased('/v1/jobs/:id/retry'), methods: ['POST'], isTraced: true },
  events: { paths: aliased('/v1/jobs/:id/events'), methods: ['GET'] },
  batches: {
    paths: aliased('/v1/batches'),
    methods: ['POST'],
    maxBodyBytes: 2 * 1024 * 1024,
    readsBodyLate: true,
    isTraced: true,
  },
  batch: { paths: aliased('/v1/batches/:id'), methods: ['GET', 'DELETE'] },
  usage: { paths: [...aliased('/v1/usage'), '/api/usage'], methods: ['GET'] },
  history: { paths: aliased('/v1/usage/history'), methods: ['GET'] },
  stats: { paths: aliased('/v1/stats'), methods: ['GET'] },
  mcp: { paths: ['/mcp'], methods: ['POST'], maxBodyBytes: 64 * 1024, takesBearer: true, isTraced: true },
});

export const openRoutes = named({
  files: { paths: ['/files/:job/:name'], methods: ['GET'] },
  welcome: { paths: ['/'], methods: ['GET'] },
  docs: { paths: ['/docs'], methods: ['GET'] },
  docsFile: { paths: ['/docs/:file'], methods: ['GET'] },
  openapi: { paths: ['/openapi.json'], methods: ['GET'] },
});

/** Every route: the router, the OpenAPI document and the tests read this table. */
export const routes = { ...keyedRoutes, ...openRoutes };

export type RouteName = keyof typeof routes;

/** Gives each row the name under which it stands. */
function named<const Rows extends Record<string, Omit<Route, 'name'>>>(rows: Rows) {
  const entries = Object.entries(rows).map(([name, row]) => [name, { name, ...row }]);
  return Object.fromEntries(entries) as { readonly [N in keyof Rows & string]: Rows[N] & { readonly name: N } };
}

/** Returns a path of the contract and its first alias (D13). */
function aliased<const P extends string>(path: P): [P, `/api${P}`] {
  return [path, `/api${path}`];
}

/** Returns the path with `{id}` in place of Express's `:id`, as the request log and OpenAPI spell it. */
export function pathTemplate(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

/** Returns the methods of a route as its Allow header lists them; every route answers OPTIONS besides. */
export function allowedMethods({ methods, endpoint }: Route): string[] {
  return methods.includes('GET') && endpoint === undefined ? [...methods, 'HEAD'] : [...methods];
}

import { expect } from 'chai';
import { allowedMethods, openRoutes, type Route, routes } from '../../src/api/routes.ts';
import type { Answer } from './api.ts';

export const film = 'https://example.com/film.mp4';
export const unknownId = '00000000-0000-4000-8000-000000000000';

/** One method of one route under one of its paths. */
export interface Call {
  readonly route: Route;
  readonly method: string;
  readonly path: string;
}

/** Every call that there is, of no job in particular. */
export const allCalls: readonly Call[] = Object.values<Route>(routes).flatMap((route) =>
  route.paths.flatMap((path) =>
    [...allowedMethods(route), 'OPTIONS'].map((method) => ({
      route,
      method,
      path: path.replaceAll(/:(?:id|job)/g, unknownId),
    })),
  ),
);

/** Every call that needs a key. OPTIONS does not, and HEAD is a GET without its body. */
export const keyedCalls = allCalls.filter(
  ({ route, method }) => !(route.name in openRoutes) && method !== 'OPTIONS' && method !== 'HEAD',
);

export const creditPaths = ['/v1/video/download', '/v1/audio/download', '/v1/media/metadata'];

/** Expects exactly this refusal: status, code and a body of one field. */
export function expectRefused(answer: Answer, status: number, code: string, error: string | RegExp): void {
  expect([answer.status, answer.headers.get('x-error-code')], answer.text).to.deep.equal([status, code]);
  expect(Object.keys(answer.json)).to.deep.equal(['error']);
  if (typeof error === 'string') expect(answer.json.error).to.equal(error);
  else expect(answer.json.error).to.match(error);
  expect(answer.headers.get('content-type')).to.equal('application/json; charset=utf-8');
  expect(answer.headers.get('cache-control')).to.equal('no-store');
}

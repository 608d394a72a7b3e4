import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { type Route, routes } from '../../src/api/routes.ts';
import { type Answer, type ApiCaller, aFilm, type CallOptions, startApi, type TestApi } from '../support/api.ts';
import { film, unknownId } from '../support/calls.ts';
import { openEventStream } from '../support/event-stream.ts';
import { endJob, runJob } from '../support/job-steps.ts';
import type { Json } from '../support/json.ts';
import { completed } from '../support/record.ts';

describe('openapi.json', () => {
  let api: TestApi;
  let caller: ApiCaller;
  let told: Json;
  let expectTold: ReturnType<typeof judgeBy>;
  before(async () => {
    api = await startApi();
    caller = await api.addCaller({ stats: true, packs: [2], quota: 5, perMinute: 10_000 });
    told = (await api.get('/openapi.json')).json;
    expectTold = judgeBy(told);
  });
  after(() => api.stop());

  it('lists every route under all its paths, and nothing else', () => {
    const wanted = Object.values<Route>(routes).flatMap((route) => {
      const methods = route.methods;
      return route.paths.flatMap((path) => methods.map((one) => `${one} ${path.replaceAll(/:(\w+)/g, '{$1}')}`));
    });
    const listed = Object.entries<object>(told.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(listed.toSorted()).to.deep.equal(wanted.toSorted());
    expect([told.openapi, told.servers]).to.deep.equal(['3.1.0', [{ url: api.url, description: 'This service' }]]);
  });

  it('has a target for every reference and link, and unique operation ids', () => {
    const text = JSON.stringify(told);
    const names = [...text.matchAll(/"#\/components\/(\w+)\/([\w-]+)"/g)];
    expect(names.filter(([, kind, name]) => !(name! in told.components[kind!]))).to.deep.equal([]);
    const operations = Object.values<Record<string, { operationId: string }>>(told.paths).flatMap(Object.values);
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).to.equal(ids.length);
    const { links } = told.paths['/v1/video/download'].get.responses[202];
    for (const { operationId } of Object.values<{ operationId: string }>(links)) expect(ids).to.include(operationId);
  });

  it('has a schema that every good answer fits, whole and cut by fields', async () => {
    const started = await api.get('/v1/video/download', caller.key, { query: film });
    expectTold('GET', '/v1/video/download', started);
    const id = started.json.job_id;
    const look = async (...more: string[]) => {
      for (const fields of [
        '',
        'id,queue.position,jobs.id,jobs.result.metadata.title,result.bytes,packs.items.id',
        ...more,
      ]) {
        const params: Record<string, string> = fields === '' ? {} : { fields };
        expectTold('GET', '/v1/jobs/{id}', await api.get(`/v1/jobs/${id}`, caller.key, params));
        expectTold('GET', '/v1/jobs', await api.get('/v1/jobs', caller.key, params));
        expectTold('GET', '/v1/usage', await api.get('/v1/usage', caller.key, params));
        expectTold('GET', '/v1/stats', await api.get('/v1/stats', caller.key, { ...params, engine: 'video' }));
      }
    };
    await look();
    await runJob(api.store, id);
    await look();
    await endJob(api.store, id, { ...completed, metadata: aFilm });
    await look('nonsense');
    expectTold('GET', '/v1/usage', await api.get('/v1/usage', caller.key, { view: 'reduced' }));
    expectTold('GET', '/v1/media/metadata', await api.get('/v1/media/metadata', caller.key, { query: film }));
    expectTold('DELETE', '/v1/jobs/{id}', await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key }));
    expectTold('POST', '/v1/jobs/{id}/retry', await api.call('POST', `/v1/jobs/${id}/retry`, { key: caller.key }));
    const stream = await openEventStream(api, `/v1/jobs/${id}/events`, caller.key);
    const event = await stream.next();
    expectTold('GET', '/v1/jobs/{id}/events', {
      status: stream.response.status,
      headers: stream.response.headers,
      json: { ...event, data: JSON.stringify(event?.data) },
    });
    await stream.cancel();
  });

  it('has a schema that every error of every route fits, under soft_fail too', async () => {
    for (const [path, methods] of Object.entries<object>(told.paths)) {
      if (/^\/(?:files\/.*|docs.*|openapi\.json|)$/.test(path)) continue;
      for (const method of Object.keys(methods)) {
        const target = path.replace('{id}', unknownId);
        for (const params of [{}, { soft_fail: 'true' }] as Record<string, string>[]) {
          const key = 'wrong';
          expectTold(method, path, await api.call(method.toUpperCase(), target, { key, params }));
          expectTold(
            method,
            path,
            await api.call(method.toUpperCase(), target, { key: caller.key, params: { ...params, fields: '\0' } }),
          );
        }
      }
    }
  });
});

describe('openapi.json of a service with TRAWL_ASYNC_STATUS=200', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_ASYNC_STATUS: '200' });
  });
  after(() => api.stop());

  it('D1: has schema and headers of accepted calls at 200, beside errors under soft_fail and metadata', async () => {
    const { key } = await api.addCaller();
    const expectTold = judgeBy((await api.get('/openapi.json')).json);
    const accept = async (method: string, path: string, options: CallOptions) => {
      const answer = await api.call(method, path, { key, ...options });
      expect([answer.status, answer.headers.has('location')], path).to.deep.equal([200, true]);
      expectTold(method, path, answer);
      const params = { soft_fail: 'true', fields: '\0' };
      expectTold(method, path, await api.call(method, path, { key, params }));
      return answer.json;
    };
    const { job_id } = await accept('GET', '/v1/video/download', { params: { query: film } });
    await accept('POST', '/api/v1/audio/download', { body: { query: film } });
    await accept('GET', '/v1/media/metadata', { params: { query: film, is_async: 'true' } });
    await accept('POST', '/v1/batches', { body: { endpoint: 'metadata', items: [{ query: film }] } });
    await endJob(api.store, job_id, { ...completed, metadata: aFilm });
    expectTold('POST', '/v1/jobs/{id}/retry', await api.call('POST', `/v1/jobs/${job_id}/retry`, { key }));
    expectTold('GET', '/v1/media/metadata', await api.get('/v1/media/metadata', key, { query: film }));
  });
});

/** Returns a function that throws unless the answer to a call is as a document says, its body without a field too many or too few. */
function judgeBy(told: Json) {
  const ajv = new Ajv2020({
    strict: false,
    formats: { uuid: true, uri: true, date: true, int64: true, 'date-time': true },
  });
  ajv.addSchema(told, 'openapi');
  return (method: string, path: string, { status, headers, json }: Pick<Answer, 'status' | 'headers' | 'json'>) => {
    const { responses } = told.paths[path][method.toLowerCase()];
    const statusOrRange = responses[status] ? String(status) : `${Math.floor(status / 100)}XX`;
    const pointer = ['paths', path, method.toLowerCase(), 'responses', statusOrRange];
    const named = responses[statusOrRange];
    expect(named, `${method} ${path} answers ${status}`).to.be.an('object');
    const response = named.$ref ? told.components.responses[named.$ref.split('/').at(-1)] : named;
    const unnamed = Object.keys(told.components.headers).filter((name) => headers.has(name) && !response.headers[name]);
    expect(unnamed, `headers of ${method} ${path} ${status}`).to.deep.equal([]);
    const type = (headers.get('content-type') ?? '').split(';')[0] ?? '';
    expect(Object.keys(response.content), `${method} ${path} ${status}`).to.include(type);
    const at = [...(named.$ref ? named.$ref.split('/').slice(1) : pointer), 'content', type, 'schema'];
    // The same schema is compiled once for all answers.
    const fits = ajv.getSchema(`openapi#/${at.map(escapePointer).join('/')}`)!;
    expect(fits(json), `${method} ${path}: ${ajv.errorsText(fits.errors)} in ${JSON.stringify(json)}`).to.equal(true);
  };
}

function escapePointer(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));
}

import { createHmac, hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { type Route, routes } from '../../src/api/routes.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { batchParameters } from '../../src/model/batch.ts';
import { jobStatuses } from '../../src/model/job.ts';
import type { ParameterTable } from '../../src/model/parameter-kinds.ts';
import {
  batchPageParameters,
  creditParameters,
  globalParameters,
  historyParameters,
  listParameters,
  pollParameters,
  statsParameters,
  usageParameters,
} from '../../src/model/request-parameters.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { makeRequest } from '../../src/webhooks/payload.ts';
import { aFilm, startApi, type TestApi } from '../support/api.ts';
import { film } from '../support/calls.ts';
import {
  type Example,
  listBlocks,
  listExamples,
  listMisfits,
  listRows,
  readCurl,
  steady,
} from '../support/doc-page.ts';
import { endJob, runJob } from '../support/job-steps.ts';
import { completed, failed, theJob } from '../support/record.ts';
import { read } from '../support/tree.ts';
import { until } from '../support/until.ts';

const page = read('docs/api.md');
const examples = listExamples(page);
const content = 'The bytes of a film';
/** Headers of node:http and of every HTTP answer. */
const usual =
  /^(?:content-.*|date|connection|keep-alive|transfer-encoding|cache-control|x-content-type-options|etag|accept-ranges|cross-origin-.*|x-accel-buffering|vary|referrer-policy)$/;
const tables: Readonly<Record<string, ParameterTable>> = {
  'Video download': creditParameters.video,
  'Audio download': creditParameters.audio,
  Metadata: creditParameters.metadata,
  Usage: usageParameters,
  'Usage history': historyParameters,
  Stats: statsParameters,
  'Polling and waiting': pollParameters,
  'All jobs': listParameters,
  'Start a batch': batchParameters,
  'Follow and cancel a batch': batchPageParameters,
  'On every route': globalParameters,
};

describe('docs/api.md', () => {
  let api: TestApi;
  const headersSeen = new Set<string>();
  const asked: { method: string; path: string }[] = [];
  before(async () => {
    api = await startApi();
    api.inspect((_, { maxEntries }) => (maxEntries === undefined ? { metadata: aFilm } : { entries: [film] }));
    // An estimate needs one job that has ended.
    const { key } = await api.addCaller();
    await aJob(key, 'CompletedJob');
    const id = await aJob(key, 'QueuedJob');
    const estimate = async () => (await api.get(`/v1/jobs/${id}`, key)).json.queue.eta_seconds;
    await until(async () => (await estimate()) !== null, 5, 'an estimate');
  });
  after(() => api.stop());

  /** A job of an account in a state, as a caller would have brought it there. */
  const aJob = async (key: string, state: string): Promise<string> => {
    const id = (await api.get('/v1/video/download', key, { query: film })).json.job_id as string;
    if (state === 'Running') await runJob(api.store, id);
    if (state === 'Error') await endJob(api.store, id, failed);
    if (state !== 'CompletedJob') return id;
    const file = `${id}/1/media.mp4`;
    await api.objects.receive(
      await api.objects.permit(file, { bytes: content.length }),
      Readable.from([Buffer.from(content)]),
    );
    const delivered = {
      ...{ key: file, bytes: content.length, sha256: hash('sha256', content), content_type: 'video/mp4' },
    };
    await runJob(api.store, id);
    await endJob(api.store, id, { ...completed, metadata: aFilm, delivered });
    return id;
  };

  const aBatch = async (key: string): Promise<string> => {
    const body = { endpoint: 'video', items: [{ query: film }] };
    return (await api.call('POST', '/v1/batches', { key, body })).json.batch_id;
  };

  /** Variables of the examples: a fresh account, with a job in the state that the example shows. */
  const variablesFor = async ({ command, body }: Example): Promise<Record<string, string>> => {
    const wanted = { stats: true, quota: 2, name: 'Acme Films', perMinute: 600, credits: 100 };
    const { key, account } = await api.addCaller(wanted);
    await addPack(api.store, account, { id: 'p1', title: 'Spring', total: 5, purchased_at: api.store.clock.now() });
    const env: Record<string, string> = { PATH: process.env.PATH ?? '', URL: api.url, KEY: key };
    if (command.includes('$EMPTY_KEY')) env.EMPTY_KEY = (await api.addCaller({ credits: 0 })).key;
    if (command.includes('/history')) await aJob(key, 'CompletedJob');
    if (command.includes('$ENDED_JOB')) env.ENDED_JOB = await aJob(key, 'Error');
    if (command.includes('$RESPONSE')) {
      const id = await aJob(key, 'CompletedJob');
      env.RESPONSE = (await api.get(`/v1/jobs/${id}`, key)).json.result.response;
    }
    const state = command.includes('DELETE') ? 'Running' : (/"status": ?"(\w+)"/.exec(body)?.[1] ?? '');
    if (command.includes('$BATCH')) env.BATCH = await aBatch(key);
    if (command.includes('$JOB') || state === 'Running') env.JOB = await aJob(key, state);
    return env;
  };

  for (const example of examples) {
    it(`shows the true answer in line ${example.line}: ${example.command.split('\n')[0]}`, async () => {
      const { method, url, headers, body } = readCurl(example.command, await variablesFor(example));
      const answer = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }), redirect: 'manual' });
      const text = await answer.text();
      expect(answer.status, text).to.equal(example.status);
      for (const [name, value] of example.headers) {
        expect(steady(answer.headers.get(name) ?? ''), name).to.equal(steady(value));
      }
      const type = answer.headers.get('content-type') ?? '';
      if (type.startsWith('application/json')) {
        expect(listMisfits(JSON.parse(example.body), JSON.parse(text))).to.deep.equal([]);
      } else if (type.startsWith('text/event-stream')) {
        expect(text.replace(/^id: \d+$/gm, 'id: N')).to.equal(`${example.body.replace(/^id: \d+$/gm, 'id: N')}\n\n`);
      } else if (/^text\/(?:html|javascript)/.test(type)) {
        expect([text.length > 100, example.body]).to.deep.equal([true, '']);
      } else {
        expect(content).to.include(text);
        expect([text !== '', example.body]).to.deep.equal([true, '']);
      }
      for (const [name] of answer.headers) headersSeen.add(name);
      asked.push({ method, path: new URL(url).pathname });
    });
  }

  it('has an example of every method of every route, and no other', () => {
    const seen = new Set(asked.map(({ method, path }) => `${method} ${routeOf(path)?.name ?? path}`));
    const wanted = Object.values<Route>(routes).flatMap(({ name, methods }) => methods.map((one) => `${one} ${name}`));
    expect([...seen].sort()).to.deep.equal(wanted.sort());
  });

  it('D13: lists every route under all its paths, and whether it costs a credit', () => {
    const listed = listRows(page, 'route').map(({ cells }) => {
      const words = [...`${cells[0]} ${cells[1]}`.matchAll(/`([^`]+)`/g)].map(([, word]) => word!);
      return { words, isFree: cells[2] === '0' };
    });
    const wanted = Object.values<Route>(routes).map(({ name, methods, paths, endpoint }) => ({
      words: [...methods, ...paths],
      isFree: endpoint === undefined && name !== 'retry' && name !== 'batches',
    }));
    expect(listed).to.deep.equal(wanted);
  });

  for (const [heading, table] of Object.entries(tables)) {
    it(`lists the parameters under ${heading}, with their defaults and allowed words`, () => {
      const rows = listRows(page, 'parameter').filter((row) => row.heading === heading);
      const listed = rows.map(({ cells: [name = '', standard = ''] }) => [unquote(name), unquote(standard)]);
      const wanted = Object.entries(table).map(([name, { required, absent }]) => [
        name,
        required ? 'required' : Array.isArray(absent) ? '' : String(absent ?? ''),
      ]);
      expect(listed.filter(([name]) => name !== 'x_api_key')).to.deep.equal(wanted);
      for (const [n, { schema }] of Object.values(table).entries()) {
        const words = schema.enum as readonly string[] | undefined;
        if (words === jobStatuses) continue;
        const { cells } = rows.filter((row) => !row.cells[0]!.includes('x_api_key'))[n]!;
        for (const word of words ?? []) expect(`${cells[1]} ${cells[2]}`).to.include(`\`${word}\``);
      }
    });
  }

  it('has no other table of parameters', () => {
    const headings = new Set(listRows(page, 'parameter').map(({ heading }) => heading));
    expect([...headings]).to.deep.equal(Object.keys(tables));
  });

  it('lists every status of a job', () => {
    const listed = listRows(page, 'status').map(({ cells }) => unquote(cells[0]!));
    expect(listed).to.deep.equal(jobStatuses);
  });

  it('lists the headers that answers have, and no other', () => {
    const listed = listRows(page, 'header').flatMap(({ cells }) => cells[0]!.split(' ').map(unquote));
    const seen = [...headersSeen].filter((name) => !usual.test(name));
    // No example waits for a rate to be used up.
    expect(listed.sort()).to.deep.equal([...seen, 'retry-after'].sort());
  });

  it('events-4 events-5: shows webhooks as they are sent, and code that verifies them', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const { key } = await api.addCaller();
    const seal = makeSeal({ secret: Buffer.alloc(32, 1) });
    const link = 'https://trawl.example/files/0b6f2f5e-6f52-4d3a-9d6c-3a1f5f0c7e11/A%20film.mp4?exp=1&sig=x';
    const shown = listBlocks(page).filter((block) => block.heading === 'Webhooks');
    const isGenuine = await webhookExample();
    const bodies = shown.filter(({ language }) => language === 'json').map(({ text }) => JSON.parse(text));
    expect(bodies).to.have.length(4);
    for (const body of bodies.filter(({ counts, type }) => counts === undefined && type === undefined)) {
      const job = await theJob(api.store, await aJob(key, body.status));
      const kept = {
        about: { job },
        url: 'https://example.com/hook',
        authorization: '',
        secret: seal.seal('webhook_secret', secret),
        isReplayed: false,
        wasTried: false,
        requestTrace: null,
      };
      const post = makeRequest(kept, Date.now(), { seal, linkOf: () => link })!;
      expect(listMisfits(body, JSON.parse(post.body))).to.deep.equal([]);
      expect(isGenuine(secret, post.headers, post.body)).to.equal(true);
      expect(isGenuine(secret, post.headers, `${post.body} `)).to.equal(false);
      const old = makeRequest(kept, Date.now() - 600_000, { seal, linkOf: () => link })!;
      expect(isGenuine(secret, old.headers, old.body)).to.equal(false);
    }
  });

  it('shows code for webhooks that says no to a forged post, and does not throw', async () => {
    const isGenuine = await webhookExample();
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const headers = { 'webhook-id': '1', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)) };
    // Node reads a byte of a header as one character, which is two bytes of UTF-8 here.
    const wide = `v1,${'\u00e9'.repeat(44)}`;
    for (const signature of [undefined, '', 'v1', wide, `v1,x ${wide}`]) {
      expect(isGenuine(secret, { ...headers, 'webhook-signature': signature }, '{}'), signature).to.equal(false);
    }
    expect(isGenuine(secret, {}, '{}')).to.equal(false);
    const signedWithNothing = createHmac('sha256', '').update(`1.${headers['webhook-timestamp']}.{}`).digest('base64');
    expect(isGenuine('', { ...headers, 'webhook-signature': `v1,${signedWithNothing}` }, '{}')).to.equal(false);
  });
});

/** Loads the function of the page that verifies webhooks. */
async function webhookExample(): Promise<(secret: string, headers: object, body: string) => boolean> {
  const code = listBlocks(page).find(({ heading, language }) => heading === 'Webhooks' && language === 'js')!.text;
  const { isGenuine } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  return isGenuine;
}

function routeOf(path: string): Route | undefined {
  return Object.values<Route>(routes).find(({ paths }) =>
    paths.some((pattern) => new RegExp(`^${pattern.replaceAll(/:\w+/g, '[^/]+')}$`).test(path)),
  );
}

function unquote(cell: string): string {
  return cell.replaceAll('`', '');
}

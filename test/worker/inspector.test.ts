import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { expect } from 'chai';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { InspectorBusy, ShareUsedUp } from '../../src/worker/inspection-slots.ts';
import { type InspectorPoolOptions, startInspectorPool } from '../../src/worker/inspector-pool.ts';
import { serveInspector } from '../../src/worker/inspector-server.ts';
import { openToOthers, programsOfOthers } from '../support/other-user.ts';
import { startProxy, type TestProxy } from '../support/proxy.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { commandOf } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';
import { processesOf, programs } from '../support/worker.ts';
import { sandboxes } from '../support/workspace.ts';

const hostile = join(import.meta.dirname, '..', 'support', 'hostile');

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly json: { metadata?: { title: string }; failure?: { code: string }; error?: string };
}

interface Studio {
  readonly root: string;
  readonly ask: (url: string, account?: string) => Asked;
  /** Folders of the requests that run. */
  readonly requests: () => string[];
  /** Processes of the inspector. */
  readonly processes: () => number[];
}

interface Asked {
  readonly answer: Promise<Answer>;
  readonly leave: () => void;
}

describe('The inspector', () => {
  let source: Source;
  let proxy: TestProxy;
  const others = programsOfOthers();

  before(async () => {
    source = await startSource();
    proxy = await startProxy((host) => host === source.host);
  });
  after(async () => {
    await proxy.stop();
    await source.stop();
  });

  async function withInspector(look: (fixture: Studio) => Promise<void>, options: Partial<InspectorPoolOptions> = {}) {
    const { folder: root, remove } = aFolder();
    const isOther = options.sandbox === 'landlock-user';
    const close = isOther ? openToOthers(root) : () => undefined;
    const { log } = aLog();
    const egress = { host: '127.0.0.1', port: Number(URL.parse(proxy.url)?.port) };
    const inspector = await startInspectorPool({
      ...{
        inspectUrl,
        programs: isOther ? others() : programs,
        egress,
        root,
        cgroups: null,
        sandbox: 'user',
        plugins: [hostile],
        log,
      },
      ...{ inspectSeconds: 20, maxConcurrent: 4, maxRequests: 100, ...options },
    });
    const inspection = await serveInspector(inspector, { host: '127.0.0.1', port: 0 });
    const place = () => join(root, readdirSync(root)[0] ?? '', 'requests');
    try {
      await look({
        root,
        ask: (url, account = '') => ask(inspection.port, JSON.stringify({ url, account })),
        requests: () => readdirSync(place()).map((name) => join(place(), name)),
        processes: () => processesOf(root).map((line) => Number(line.split(' ')[0])),
      });
    } finally {
      await inspection.close(0);
      await inspector.close();
    }
    expect(readdirSync(root)).to.deep.equal([]);
    await until(() => processesOf(root).length === 0, 5, 'no process is left');
    close();
    remove();
  }

  for (const sandbox of [...sandboxes, 'landlock-user'] as const) {
    it(`metadata-closed D66: answers the metadata of a URL, or the failure of a URL without media (sandbox ${sandbox})`, () =>
      withInspector(
        async ({ ask: askFor, requests }) => {
          const found = await askFor(`${source.url}/films/clip.mp4`).answer;
          expect(found.status).to.equal(200);
          expect(found.json.metadata).to.include({ title: 'clip', width: 640, height: 360, extractor: 'generic' });
          const lost = await askFor(`${source.url}/status/404`).answer;
          expect(lost).to.deep.include({ status: 200 });
          expect(lost.json.failure?.code).to.equal('deleted');
          const inner = await askFor('http://127.0.0.1:1/').answer;
          expect(inner.json.failure?.code).to.equal('address_not_allowed');
          expect(requests()).to.deep.equal([]);
        },
        { sandbox },
      ));

    it(`hides the parent and other requests from a child (sandbox ${sandbox})`, () =>
      withInspector(
        async ({ ask: askFor, requests }) => {
          const other = askFor('http://attack.example/sleep');
          await until(() => requests().some((folder) => readdirSync(folder).includes('secret')), 10, 'the other runs');
          // Its name is told, as if it had been guessed.
          const { json } = await askFor(`http://attack.example/look?other=${requests()[0]}`).answer;
          expect(json.metadata?.title, JSON.stringify(json)).to.equal('[]');
          other.leave();
        },
        { sandbox },
      ));

    it(`keeps a child from killing another request (sandbox ${sandbox})`, () =>
      withInspector(
        async ({ ask: askFor, requests }) => {
          const other = askFor('http://attack.example/sleep');
          let answered = false;
          const hear = () => {
            answered = true;
          };
          other.answer.then(hear, hear);
          await until(() => requests().length === 1, 10, 'the other runs');
          const struck = await askFor('http://attack.example/strike').answer;
          expect(struck.status).to.be.oneOf([200, 503]);
          const { status } = await askFor(`${source.url}/films/clip.mp4`).answer;
          expect({ status, answered }).to.deep.equal({ status: 200, answered: false });
          other.leave();
        },
        { sandbox },
      ));

    it(`fails a page that takes memory without end (sandbox ${sandbox})`, () =>
      withInspector(
        async ({ ask: askFor }) => {
          const { json } = await askFor('http://attack.example/bomb').answer;
          expect(json.failure?.code).to.be.a('string');
        },
        { sandbox },
      ));
  }

  it('ends the child when its caller hangs up', () =>
    withInspector(async ({ ask: askFor, requests, processes }) => {
      const before = processes().length;
      const asked = askFor('http://attack.example/sleep');
      await until(() => processes().length > before && requests().length === 1, 10, 'the child runs');
      asked.leave();
      await until(() => processes().length === before && requests().length === 0, 2, 'the child is gone');
    }));

  it('answers 503 when a child is killed, and answers the next request', () =>
    withInspector(async ({ ask: askFor, processes }) => {
      const before = processes();
      const asked = askFor('http://attack.example/sleep');
      const child = await until(() => processes().find((id) => !before.includes(id)), 10, 'the child runs');
      process.kill(Number(child), 'SIGKILL');
      expect(await asked.answer).to.deep.include({ status: 503, retryAfter: '2' });
      expect((await askFor(`${source.url}/films/clip.mp4`).answer).status).to.equal(200);
    }));

  it('D93: answers 503 when the warm parent is killed, and starts another parent', () =>
    withInspector(async ({ ask: askFor, processes }) => {
      const parents = processes();
      const asked = askFor('http://attack.example/sleep');
      await until(() => processes().length > parents.length, 10, 'the child runs');
      const parent = parents.find(isParent) ?? 0;
      process.kill(parent, 'SIGKILL');
      expect((await asked.answer).status).to.equal(503);
      const again = () => askFor(`${source.url}/films/clip.mp4`).answer;
      await until(async () => (await again()).status === 200, 15, 'it answers again');
    }));

  it('lets a request wait while accounts use all its slots, and answers it when one of them is free', () =>
    withInspector(
      async ({ ask: askFor, requests }) => {
        const first = ['a', 'b'].map((account) => askFor('http://attack.example/sleep', account));
        await until(() => requests().length === 2, 10, 'two run');
        const third = askFor(`${source.url}/films/clip.mp4`, 'c');
        first[0]?.leave();
        expect((await third.answer).status).to.equal(200);
        first[1]?.leave();
      },
      { maxConcurrent: 2 },
    ));

  it('answers the failure timeout when the time for a page is over', () =>
    withInspector(
      async ({ ask: askFor }) => {
        const begin = performance.now();
        expect((await askFor('http://attack.example/sleep').answer).json.failure?.code).to.equal('timeout');
        expect(performance.now() - begin).to.be.at.least(900);
      },
      { inspectSeconds: 1 },
    ));

  it('replaces the parent after its last request without refusing one', () =>
    withInspector(
      async ({ ask: askFor, processes }) => {
        const first = processes().filter(isParent);
        const statuses: number[] = [];
        await until(
          async () => {
            statuses.push((await askFor(`${source.url}/status/404`).answer).status);
            return first.every((id) => !processes().includes(id));
          },
          20,
          'the first parent has left',
        );
        expect(new Set(statuses)).to.deep.equal(new Set([200]));
      },
      { maxRequests: 2 },
    ));

  const wrong: readonly [string, string][] = [
    ['no JSON', '{'],
    ['no URL', '{}'],
    ['another scheme', '{"url": "file:///etc/passwd"}'],
    ['a body without end', JSON.stringify({ url: `http://a.example/${'x'.repeat(20_000)}` })],
  ];
  it(`answers 400 to ${wrong.map(([title]) => title).join(', ')}`, async () => {
    const inspect = () => Promise.reject(new Error('never asked'));
    const { port, close } = await serveInspector({ inspect, list: inspect }, { host: '127.0.0.1', port: 0 });
    for (const [title, body] of wrong) expect((await ask(port, body).answer).status, title).to.equal(400);
    await close(0);
  });

  it('answers 429 when the account uses its share, and 503 when no slot is free, both with Retry-After', async () => {
    for (const [error, status, sentence] of [
      [new ShareUsedUp('used up'), 429, 'Too Many Requests: used up'],
      [new InspectorBusy('busy'), 503, 'Service Unavailable: busy'],
    ] as const) {
      const { port, close } = await serveInspector(
        { inspect: () => Promise.reject(error), list: () => Promise.reject(error) },
        { host: '127.0.0.1', port: 0 },
      );
      const answer = await ask(port, '{"url": "https://a.example/", "account": "a"}').answer;
      expect(answer).to.deep.equal({ status, retryAfter: '2', json: { error: sentence } });
      await close(0);
    }
  });

  it('answers requests under way when it closes, and cuts them when the drain time is over', async () => {
    for (const [drainSeconds, status] of [
      [20, 503],
      [0, 'ECONNRESET'],
    ] as const) {
      const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const inspect = async () => {
        asked.resolve();
        await go.promise;
        throw new InspectorBusy('it ends');
      };
      const { port, close } = await serveInspector({ inspect, list: inspect }, { host: '127.0.0.1', port: 0 });
      const { answer } = ask(port, '{"url": "https://a.example/", "account": "a"}');
      await asked.promise;
      const closed = close(drainSeconds);
      if (drainSeconds === 0) await closed;
      go.resolve();
      const said = await answer.then(
        ({ status }) => status,
        ({ code }) => code,
      );
      expect(said).to.equal(status);
      await closed;
    }
  });
});

/** Returns true for the Python that runs the inspector, not for the processes around it. */
function isParent(id: number): boolean {
  const [program = '', ...words] = commandOf(id).split(' ');
  const runsIt = program === programs.python && words.some((word) => word.endsWith('/inspector-parent.py'));
  return runsIt && words[0] === '-I' && words[1] !== '-S';
}

function ask(port: number, body: string): Asked {
  const asking = request({ host: '127.0.0.1', port, method: 'POST', path: '/inspect', agent: false });
  const answer = new Promise<Answer>((resolve, reject) => {
    asking.once('error', reject).once('response', async (response) => {
      const json = JSON.parse(await readText(response));
      resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], json });
    });
  });
  // Who leaves hears nothing more.
  answer.catch(() => undefined);
  asking.end(body);
  return { answer, leave: () => asking.destroy() };
}

import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { boards } from '../../dashboards/boards.ts';
import { openDrawer } from '../../dashboards/draw/draw-board.ts';
import { faults, sourcesOf } from '../../dashboards/draw/faults.ts';
import { makeHistory, serveHistory } from '../../dashboards/draw/history-server.ts';
import { servePages } from '../../dashboards/draw/page-server.ts';
import { looks } from '../../dashboards/draw/picture-index.ts';
import { writePictureSet } from '../../dashboards/draw/picture-set.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { freePort } from '../support/free-port.ts';
import { aFolder } from '../support/redis.ts';
import { read, root } from '../support/tree.ts';
import { files } from '../support/tree-files.ts';
import { drills } from './drills.ts';

const run = promisify(execFile);
const isLong = process.env.ROUNDS !== undefined;

describe('the histories behind the pictures', () => {
  it('have every metric with its labels', () => {
    const sources = sourcesOf(null).filter(({ metric }) => metric.startsWith('trawl_'));
    const found = Object.fromEntries(
      sources.map(({ metric, labels }) => [
        metric,
        Object.keys(labels)
          .filter((name) => name !== 'namespace' && name !== 'instance')
          .sort(),
      ]),
    );
    const declared = makeMetrics()
      .registry.getMetricsAsArray()
      .filter(({ name }) => !/^trawl_(process|nodejs)_/.test(name))
      .map((metric) => [metric.name, [...(metric as { labelNames?: string[] }).labelNames!].sort()]);
    expect(found).to.deep.equal(Object.fromEntries(declared));
  });

  it('have each value with which a counter begins, so that a legend is as long as it is in a real system', async () => {
    const texts = sourcesOf(null).map(({ metric, labels: { namespace: _, instance: __, ...own } }) => {
      return `${metric} ${JSON.stringify(own)}`;
    });
    const text = await makeMetrics().registry.metrics();
    const begun = [...text.matchAll(/^(trawl_\w+_total)\{(\w+)="(\w+)"\} 0$/gm)];
    expect(begun).to.not.be.empty;
    const lacking = begun.map(([, metric, label, value]) => `${metric} ${JSON.stringify({ [label!]: value })}`);
    expect(lacking.filter((one) => !texts.includes(one))).to.deep.equal([]);
  });

  it('are there for every drill', () => {
    expect(faults.map(({ drill }) => drill)).to.deep.equal(drills.map(({ name }) => name));
  });

  for (const { drill, changes } of faults)
    it(`of '${drill}' change series that are there`, () => {
      const texts = sourcesOf(null).map(({ metric, labels }) => {
        const words = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
        return `${metric}{${words.join(',')}}`;
      });
      const missing = Object.keys(changes).filter((start) => !texts.some((text) => text.includes(start)));
      expect(missing).to.deep.equal([]);
    });
});

const folderOfPictures = 'docs/pictures/watch/';

/** Returns the pictures that an index leads to. */
function linkedFiles(index: string): string[] {
  return [...new Set([...index.matchAll(/\((\S+\.webp)\)/g)].map(([, file]) => file!))];
}

describe('the pictures in the documents', () => {
  const index = read(`${folderOfPictures}README.md`);
  const rows = index.split('\n').filter((line) => line.startsWith('|'));

  it('are of every dashboard in each theme and width, in a healthy system and in each drill', () => {
    const [heading, , ...states] = rows.map((row) => row.slice(2, -2).split(' | '));
    expect(heading).to.deep.equal(['State', ...boards.map(({ title }) => title)]);
    expect(states.map(([state]) => state)).to.deep.equal(['A healthy system', ...drills.map(({ name }) => name)]);
    for (const [, ...cells] of states)
      for (const [n, cell] of cells.entries()) {
        const shown = [...cell.matchAll(/\[(\w+ \d+)\]\([\w-]+-(\w+)-(\w+)-(\d+)\.webp\)/g)];
        const keys = shown.map(([, name, board, theme, width]) => [name, board, `${theme} ${width}`].join());
        expect(keys).to.include.members(
          looks.map(({ theme, width }) => [`${theme} ${width}`, boards[n]!.name, `${theme} ${width}`].join()),
        );
      }
  });

  it('are those that the index leads to, of 8 MB at most', () => {
    const there = files.filter((path) => path.startsWith(folderOfPictures) && !path.endsWith('.md'));
    expect(there).to.have.members(linkedFiles(index).map((file) => folderOfPictures + file));
    const bytes = there.reduce((sum, path) => sum + statSync(join(root, path)).size, 0);
    expect(bytes).to.be.below(8e6);
  });
});

describe('a set of pictures', () => {
  let [folder, remove]: [string, () => void] = ['', () => {}];
  before(() => {
    ({ folder, remove } = aFolder());
  });
  after(() => remove());
  const put = (name: string) => (to: string) => writeFileSync(join(to, name), name);
  const write = (draw: (to: string) => Promise<readonly string[]>) =>
    writePictureSet({ folder, old: '*.webp' }, draw).then(
      () => 'written',
      ({ message }: Error) => message,
    );

  it('takes the place of the one before when nothing is wrong with it', async () => {
    for (const name of ['old.webp', 'notes.md']) put(name)(folder);
    const draw = async (to: string) => {
      put('new.webp')(to);
      return [];
    };
    expect(await write(draw)).to.equal('written');
    expect(readdirSync(folder)).to.have.members(['new.webp', 'notes.md']);
  });

  it('is not written when something is wrong with it or a panel fails, which its error says', async () => {
    const before = readdirSync(folder);
    const faulty = async (to: string) => {
      put('faulty.webp')(to);
      return ['service: empty in a healthy system: Queue'];
    };
    expect(await write(faulty)).to.equal(
      `No picture was written to ${folder}.\nservice: empty in a healthy system: Queue`,
    );
    let drawnIn = '';
    const failing = async (to: string) => {
      drawnIn = to;
      put('failing.webp')(to);
      throw new Error('Queue: the query up failed');
    };
    expect(await write(failing)).to.equal(`No picture was written to ${folder}.\nQueue: the query up failed`);
    expect(readdirSync(folder)).to.deep.equal(before);
    expect(existsSync(drawnIn)).to.equal(false);
  });

  it('has an error, not a panel without data, for a Prometheus that does not answer', async () => {
    const pages = await servePages({}, `http://127.0.0.1:${await freePort()}`);
    try {
      const answer = await fetch(`${pages.url}/prometheus/api/v1/query?query=up`);
      const { status, error } = (await answer.json()) as { status: string; error: string };
      expect(status).to.equal('error');
      expect(error).to.match(/^Prometheus does not answer: .*ECONNREFUSED/);
    } finally {
      await pages.close();
    }
  });
});

if (isLong)
  describe('the pictures', function () {
    this.timeout(7_200_000);

    it('are not drawn when a query fails, and the error names its panel and the query', async () => {
      await run(join(root, 'dashboards/draw/build'), []);
      const { folder, remove } = aFolder();
      const end = Date.UTC(2026, 10, 23, 14, 10) / 1000;
      const history = makeHistory({ drill: null, end }, new Set(['trawl_jobs_total']));
      const server = await serveHistory(history, { port: await freePort(), maxSamples: 10 });
      const drawer = await openDrawer(server.url);
      try {
        const picture = { board: 'service', theme: 'dark', width: 1400, file: join(folder, 'service.png') } as const;
        const said = await drawer.draw(picture, end).then(
          () => 'drawn',
          ({ message }: Error) => message,
        );
        expect(said).to.match(/^service, dark 1400: .+: the query .*trawl_jobs_total.* failed: .*too many samples/);
        expect(readdirSync(folder)).to.deep.equal([]);
      } finally {
        await drawer.close();
        await server.stop();
        remove();
      }
    });

    it('show a reader one fault, with its alerts in words and all runbooks, and do not name it', async () => {
      const { folder, remove } = aFolder();
      try {
        const blind = [join(root, 'dashboards/draw/blind-drill.ts'), '--seed', 'a word'];
        await run(join(root, 'dashboards/draw/build'), []);
        await run(process.execPath, [...blind, folder]);
        const { stdout } = await run(process.execPath, [...blind, '--answer']);
        const [, name] = /^fault: (.*)$/m.exec(stdout)!;
        const pages = boards.map((board) => `${board.name}.png`);
        expect(readdirSync(folder)).to.have.members([...pages, 'alerts.md', 'runbooks']);
        const told = readFileSync(join(folder, 'alerts.md'), 'utf8');
        const fired = [...told.matchAll(/^## (\w+) \((?:critical|warning)\)$/gm)].map(([, alert]) => alert);
        const drill = drills.find((one) => one.name === name)!;
        expect(fired).to.have.members(Object.keys(drill.alerts));
        expect(told)
          .not.to.include(name)
          .and.not.to.match(/\{\{|<no value>|error/);
      } finally {
        remove();
      }
    });

    it('are drawn without an empty panel in a healthy system, and every history fires the alerts of its drill', async () => {
      const { folder, remove } = aFolder();
      try {
        await run(join(root, 'dashboards/draw/build'), []);
        await run(process.execPath, [join(root, 'dashboards/draw/draw.ts'), folder]);
        const drawn = readdirSync(folder).filter((file) => file.endsWith('.webp'));
        expect(drawn).to.have.members(linkedFiles(readFileSync(join(folder, 'README.md'), 'utf8')));
      } finally {
        remove();
      }
    });
  });

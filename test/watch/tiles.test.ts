import { expect } from 'chai';
import { boards } from '../../dashboards/boards.ts';
import { faults } from '../../dashboards/draw/faults.ts';
import { type HistoryServer, makeHistory, serveHistory } from '../../dashboards/draw/history-server.ts';
import { judgeAlerts } from '../../dashboards/draw/judge-alerts.ts';
import { nameOf } from '../../dashboards/draw/picture-index.ts';
import type { Color, Panel } from '../../dashboards/panels.ts';
import { workers } from '../../dashboards/workers.ts';
import { alerts } from '../support/alerts.ts';
import { freePort } from '../support/free-port.ts';
import { listMetrics } from '../support/metric-names.ts';
import { drills } from './drills.ts';

interface Answer {
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

const end = Date.UTC(2026, 10, 23, 14, 10) / 1000;
/** The numbers of each dashboard, by its name in Grafana. */
const numbers = new Map(
  boards.map(({ title, rows }) => {
    const panels: Panel[] = Object.values(rows).flat();
    return [`Trawl / ${title}`, panels.filter(({ kind }) => kind === 'number')];
  }),
);
const all = [...numbers.values()].flat();
const [service] = boards;
const firstRow = Object.values(service!.rows)[0]!;
const states = [null, ...faults.map(({ drill }) => drill)];
/** Namespace of a second healthy system. */
const second = 'music';
/** Numbers that are as large again for each system. */
const amounts = ['Charged', 'Credits on hold', 'Queued jobs', 'Running jobs', 'Webhooks due'];

describe('the histories of the drills before a real Prometheus', () => {
  let server: HistoryServer;

  before(async () => {
    const queries = [
      ...[...all, ...Object.values(workers.rows).flat()].flatMap((panel) => Object.keys(panel.queries)),
      ...alerts.map(({ expr }) => expr),
      ...drills.flatMap(({ shows = [] }) => shows),
    ];
    const metrics = new Set(queries.flatMap(listMetrics));
    // Each history is a namespace of one Prometheus. Types are left out: they may be said once alone.
    const texts = states.map((drill) => {
      const history = makeHistory({ drill, end }, metrics).replaceAll(/^#.*\n/gm, '');
      return history.replaceAll('namespace="films"', `namespace="${nameOf(drill)}"`);
    });
    texts.push(texts[states.indexOf(null)]!.replaceAll(`namespace="${nameOf(null)}"`, `namespace="${second}"`));
    server = await serveHistory(`${texts.join('')}# EOF\n`, { port: await freePort() });
  });
  after(() => server?.stop());

  it('fire the alerts of their drill and no other', async () => {
    const found = await judgeAlerts(server.url, end);
    const fired = states.map((drill) => [drill, found.get(nameOf(drill)) ?? []]);
    const wanted = states.map((drill) => {
      return [drill, Object.keys(drills.find(({ name }) => name === drill)?.alerts ?? {}).sort()];
    });
    expect(fired).to.deep.equal(wanted);
  });

  it('show only green numbers in a healthy system', async () => {
    const colors = await Promise.all(
      all.map(async (panel) => [panel.title, await colorOf(panel, nameOf(null))] as const),
    );
    expect(colors.filter(([, color]) => color !== 'green')).to.deep.equal([]);
  });

  it('show only green numbers for two healthy systems in two namespaces, and the sum of what both have', async () => {
    const both = `${nameOf(null)}|${second}`;
    const colors = await Promise.all(all.map(async (panel) => [panel.title, await colorOf(panel, both)] as const));
    expect(colors.filter(([, color]) => color !== 'green')).to.deep.equal([]);
    for (const { title, queries } of all.filter((panel) => amounts.includes(panel.title))) {
      const [one, sum] = await Promise.all([nameOf(null), both].map((names) => ask(Object.keys(queries)[0]!, names)));
      expect(Number(sum?.[0]?.value[1]), title).to.equal(2 * Number(one?.[0]?.value[1]));
    }
  });

  it('show a namespace without a leader beside a healthy system', async () => {
    const leaders = all.find(({ title }) => title === 'Leaders')!;
    const away = `${nameOf(null)}|${nameOf('No controller leads')}`;
    expect(await colorOf(leaders, away)).to.equal('red');
  });

  for (const { name, alerts: fired } of drills)
    it(`turn a number of the first row of Service, and one of each dashboard that an alert names, yellow or red when '${name}'`, async () => {
      const named = alerts.filter(({ alert }) => alert in fired).map(({ annotations }) => annotations.dashboard);
      for (const panels of [firstRow, ...named.map((dashboard) => numbers.get(dashboard)!)]) {
        const colors = await Promise.all(panels.map((panel) => colorOf(panel, nameOf(name))));
        expect(colors).to.satisfy((shown: (Color | null)[]) => shown.includes('yellow') || shown.includes('red'));
      }
    });

  it('count a worker that waits for the cluster once, although each controller shows it', async () => {
    const panel = workers.rows.Cluster!.find(({ title }) => title === 'Workers that wait for the cluster')!;
    const [shown] = await ask(`sum(${Object.keys(panel.queries)[0]})`, nameOf(null));
    const [seen] = await ask(
      'sum(trawl_attempts_waiting{namespace="$namespace",instance="trawl-controller-1"})',
      nameOf(null),
    );
    expect(Number(seen?.value[1])).to.be.greaterThan(0);
    expect(shown?.value).to.deep.equal(seen?.value);
  });

  it('show what their drills see', async () => {
    for (const { name, shows = [] } of drills)
      for (const query of shows) expect(await ask(query, nameOf(name)), `${name}: ${query}`).to.have.length(1);
  });

  /** Returns the color that Grafana gives a number at the end of a history, `null` when there is none. */
  async function colorOf(panel: Panel, namespaces: string): Promise<Color | null> {
    const [found] = await ask(Object.keys(panel.queries)[0]!, namespaces);
    if (!found) return null;
    const value = Number(found.value[1]);
    const passed = (panel.limits ?? [[null, 'green']]).filter(([from]) => from === null || value >= from);
    return passed.at(-1)![1];
  }

  /** Asks for the end of the histories in some namespaces. */
  async function ask(query: string, namespaces: string): Promise<Answer['data']['result']> {
    const text = query.replaceAll('$namespace', namespaces).replaceAll('$__range', '6h');
    const asked = new URLSearchParams({ query: text, time: String(end) });
    const { data } = (await (await fetch(`${server.url}/api/v1/query?${asked}`)).json()) as Answer;
    return data.result;
  }
});

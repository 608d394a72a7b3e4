import { expect } from 'chai';
import { boards } from '../../dashboards/boards.ts';
import { makeDashboard, type Panel } from '../../dashboards/panels.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { alerts } from '../support/alerts.ts';
import { listMetrics, listUnknown } from '../support/metric-names.ts';
import { parseQuery } from '../support/promql.ts';
import { read } from '../support/tree.ts';
import { files } from '../support/tree-files.ts';

const folder = 'charts/trawl/dashboards/';
const panels = boards.flatMap(({ name, rows }) =>
  Object.values(rows).flatMap((row) => row.map((panel) => ({ place: `${name}: ${panel.title}`, panel }))),
);
const queriesOf = (panel: Panel) => Object.keys(panel.queries);

describe('the dashboards', () => {
  it('are written as they are made, and no other is there', () => {
    const there = files.filter((path) => path.startsWith(folder));
    expect(there).to.have.members(boards.map(({ name }) => `${folder}${name}.json`));
    for (const board of boards) {
      const made = `${JSON.stringify(makeDashboard(board), null, 2)}\n`;
      expect(read(`${folder}${board.name}.json`) === made, `${board.name}: make verify`).to.equal(true);
    }
  });

  it('ask only for metrics, labels and values that trawl shows', () => {
    const unknown = panels.flatMap(({ place, panel }) =>
      queriesOf(panel).flatMap((query) => listUnknown(query).map((one) => `${place}: ${one}`)),
    );
    expect(unknown).to.deep.equal([]);
  });

  it('ask only for the chosen namespaces, of the chosen data source', () => {
    for (const { place, panel } of panels)
      for (const query of queriesOf(panel)) {
        const selectors = query.match(/\btrawl_\w+/g)?.length;
        expect(query.match(/namespace=~"\$namespace"/g)?.length, place).to.equal(selectors);
      }
    const text = JSON.stringify(boards.map(makeDashboard));
    const sources = [...text.matchAll(/"type":"prometheus","uid":"([^"]*)"/g)].map(([, uid]) => uid);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
    expect(new Set(sources)).to.deep.equal(new Set(['${datasource}']));
  });

  it('show every metric, but for those that an alert reads', () => {
    const queries = [...panels.flatMap(({ panel }) => queriesOf(panel)), ...alerts.map(({ expr }) => expr)];
    const used = new Set(queries.flatMap(listMetrics));
    const declared = Object.keys(makeMetrics()).filter((name) => !['registry', 'refreshers'].includes(name));
    expect(declared.filter((name) => !used.has(`trawl_${name}`))).to.deep.equal([]);
  });

  it('select a bound of a histogram, as alerts do, in the form of Prometheus 2 and in that of Prometheus 3', () => {
    const queries = [...panels.flatMap(({ panel }) => queriesOf(panel)), ...alerts.map(({ expr }) => expr)];
    const bounds = queries
      .flatMap((query) => parseQuery(query).selectors.flatMap(({ matchers }) => matchers))
      .filter(({ label }) => label === 'le');
    expect(bounds).to.not.be.empty;
    for (const { operator, value } of bounds) {
      const pattern = new RegExp(`^(?:${JSON.parse(`"${value}"`)})$`);
      const [bound] = /^\d+/.exec(value)!;
      expect(operator, value).to.equal('=~');
      const forms = [bound, `${bound}.0`, `${bound}00`, `${bound}.5`];
      expect(forms.filter((form) => pattern.test(form))).to.deep.equal([bound, `${bound}.0`]);
    }
  });

  it('say with each panel what is good, and name only alerts that are there', () => {
    const names = alerts.map(({ alert }) => alert);
    for (const { place, panel } of panels) {
      expect(panel.good, place).to.match(/^\S.{8,160}\.$/);
      const named = panel.good.match(/\bTrawl[A-Z]\w+/g) ?? [];
      expect(
        named.filter((name) => !names.includes(name)),
        place,
      ).to.deep.equal([]);
    }
    expect(new Set(panels.map(({ place }) => place)).size).to.equal(panels.length);
  });

  it('have a name on every line and no more numbers than fit into a row', () => {
    for (const { place, panel } of panels) {
      const isDrawn = panel.kind === 'lines' || panel.kind === 'stack';
      const legends = Object.values(panel.queries);
      expect(
        legends.every((legend) => (legend !== '') === isDrawn),
        place,
      ).to.equal(true);
      if (!isDrawn) expect(legends, place).to.have.length(1);
    }
    const rows = boards.flatMap(({ rows: all }) => Object.values(all));
    const crowded = rows.filter((row) => row.filter(({ kind }) => kind === 'number').length > 6);
    expect(crowded).to.deep.equal([]);
  });

  it('draw the limit of a line into its panel, and say in words why a number may be missing', () => {
    for (const board of boards) {
      const made = makeDashboard(board).panels ?? [];
      for (const panel of Object.values(board.rows).flat()) {
        const { fieldConfig } = made.find(({ title }) => title === panel.title) as {
          fieldConfig?: { defaults: { noValue?: string; custom?: { thresholdsStyle?: { mode: string } } } };
        };
        const isLine = panel.kind === 'lines' && panel.limits !== undefined;
        expect(fieldConfig?.defaults.custom?.thresholdsStyle?.mode, panel.title).to.equal(
          isLine ? 'dashed' : undefined,
        );
        expect(fieldConfig?.defaults.noValue, panel.title).to.equal(panel.empty);
      }
    }
  });

  it('have ids of their own, and cannot be changed by chance', () => {
    for (const board of boards) {
      const { uid, editable, panels: made = [] } = makeDashboard(board);
      expect([uid, editable]).to.deep.equal([`trawl-${board.name}`, false]);
      const ids = made.map((panel) => ('id' in panel ? panel.id : undefined));
      expect(new Set(ids).size, board.name).to.equal(ids.length);
      expect(ids).to.not.include(undefined);
    }
  });
});

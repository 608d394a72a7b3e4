import { expect } from 'chai';
import { boards } from '../../dashboards/boards.ts';
import type { Panel } from '../../dashboards/panels.ts';
import { commands } from '../../src/admin/commands.ts';
import { alerts } from '../support/alerts.ts';
import { listMetrics, listUnknown } from '../support/metric-names.ts';
import { read } from '../support/tree.ts';
import { files } from '../support/tree-files.ts';

const folder = 'docs/runbooks/';
const names = alerts.map(({ alert }) => alert);
const pages = files.filter((path) => path.startsWith(folder) && path !== `${folder}README.md`);
const blocksOf = (page: string, kind: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${kind}\\n([^]*?)^\`\`\`$`, 'gm'))].flatMap(([, text]) =>
    text!.trim().split('\n'),
  );

describe('the alerts', () => {
  it('are read by the grammar of Prometheus, which finds a wrong name, label and value', () => {
    const query = 'sum by (le, verdict) (rate(trawl_jobs_total{blame="we",host="x"}[5m])) / trawl_job_seconds > 1';
    expect(listUnknown(query)).to.deep.equal([
      'blame="we"',
      'label host of trawl_jobs_total',
      'metric trawl_job_seconds',
      'label le',
      'label verdict',
    ]);
    expect(listUnknown('sum(rate(trawl_jobs_total[5m])')).to.have.length(1);
  });

  it('name only metrics, labels and values that trawl shows', () => {
    const unknown = alerts.flatMap(({ alert, expr }) => listUnknown(expr).map((one) => `${alert}: ${one}`));
    expect(unknown).to.deep.equal([]);
  });

  it('say more by queries of their own namespace, which name only what trawl shows', () => {
    const queries = alerts.flatMap(({ alert, annotations: { description = '' } }) => {
      const written = [...description.matchAll(/query \(printf ("(?:[^"\\]|\\.)*")/g)];
      return written.map(([, text]) => ({ alert, query: (JSON.parse(text!) as string).replaceAll('%q', '"films"') }));
    });
    expect(queries.length).to.be.greaterThan(20);
    const unknown = queries.flatMap(({ alert, query }) => listUnknown(query).map((one) => `${alert}: ${one}`));
    expect(unknown).to.deep.equal([]);
    for (const { alert, query } of queries) {
      expect(query.match(/namespace="films"/g)?.length, alert).to.equal(query.match(/\btrawl_\w+/g)?.length);
    }
  });

  it('are held apart by namespace, unless they say that nothing is seen', () => {
    const global = alerts.filter(({ expr }) => !/\b(?:by|on) \(namespace\b/.test(expr)).map(({ alert }) => alert);
    expect(global).to.deep.equal(['TrawlNotSeen']);
  });

  it('have a name of their own, a severity, a sentence and a page each', () => {
    expect(new Set(names).size).to.equal(names.length);
    for (const { alert, labels, annotations } of alerts) {
      expect(alert).to.match(/^Trawl[A-Z][A-Za-z]+$/);
      expect(labels.severity, alert).to.be.oneOf(['critical', 'warning']);
      expect(annotations.summary, alert).to.match(/^[A-Z].{20,120}[^.]$/);
      expect(annotations.runbook_url).to.equal(`${folder}${alert}.md`);
    }
  });

  it('name a dashboard that shows a metric of theirs', () => {
    for (const { alert, expr, annotations } of alerts) {
      const board = boards.find(({ title }) => annotations.dashboard === `Trawl / ${title}`);
      // Below its first row: there Service sums up the other dashboards.
      const panels: Panel[] = Object.values(board?.rows ?? {}).flat();
      const shown = panels.filter(({ words }) => words === undefined).flatMap(({ queries }) => Object.keys(queries));
      const own = listMetrics(expr).filter((metric) => metric.startsWith('trawl_'));
      expect(shown.flatMap(listMetrics), alert).to.include.oneOf(own);
    }
  });

  it('have a runbook each, and no runbook is without an alert', () => {
    expect(pages).to.have.members(names.map((name) => `${folder}${name}.md`));
    const rows = [...read(`${folder}README.md`).matchAll(/^\| \[(\w+)\]\(\1\.md\) \| (yes|no) \| .*\. \|$/gm)];
    const listed = rows.map(([, name, wakes]) => `${name} ${wakes === 'yes' ? 'critical' : 'warning'}`);
    expect(listed).to.deep.equal(alerts.map(({ alert, labels }) => `${alert} ${labels.severity}`));
  });

  it('are explained by logs that go back as far as they look', () => {
    for (const { alert, expr } of alerts) {
      const asked = [...read(`${folder}${alert}.md`).matchAll(/--since=(\w+)/g)].map(([, since]) => since!);
      const looksBack = Math.max(0, ...[...expr.matchAll(/\[(\w+)\]/g)].map(([, window]) => minutesOf(window!)));
      if (asked.length > 0) expect(Math.max(...asked.map(minutesOf)), alert).to.be.at.least(looksBack);
    }
  });

  for (const path of pages) {
    it(`${path} says meaning, impact, diagnosis and mitigation, with commands and queries that exist`, () => {
      const page = read(path);
      const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
      expect(headings).to.deep.equal(['Meaning', 'Impact', 'Diagnosis', 'Mitigation']);
      expect(page.split('\n')[0]).to.equal(`# ${path.slice(folder.length, -'.md'.length)}`);
      expect(blocksOf(page, 'promql').flatMap(listUnknown)).to.deep.equal([]);
      const asked = [...blocksOf(page, 'promql'), ...blocksOf(page, 'sh')];
      expect(asked.length).to.be.greaterThan(0);
      const spans = [...page.matchAll(/`(trawl [^`\n]+)`/g)].map(([, command]) => command!);
      const typed = [...blocksOf(page, 'sh').filter((line) => line.startsWith('trawl ')), ...spans];
      expect(typed.filter((line) => !isCommand(line))).to.deep.equal([]);
    });
  }
});

describe('a reader of a runbook', () => {
  for (const path of pages) {
    it(`is told by ${path} which alert is much like it, and which single command to run first`, () => {
      const [, meaning = '', , diagnosis = ''] = read(path).split(/^## \w+\n\n/m);
      const alike = [...meaning.matchAll(/\[(\w+)\]\(\1\.md\)/g)].map(([, name]) => `${folder}${name}.md`);
      expect(alike).to.not.be.empty.and.to.not.include(path);
      expect(diagnosis).to.match(/^Run first:\n\n```sh\n[^\n]+\n```\n\n[^\n]{30,}\.$/m);
    });
  }
});

/** Returns the minutes of a time such as 15m, 2h or 1d. */
function minutesOf(time: string): number {
  const units: Record<string, number> = { m: 1, h: 60, d: 1440 };
  return Number(time.slice(0, -1)) * units[time.slice(-1)]!;
}

/** Returns true for the doctor, and for a command of the operator with no option that it lacks. */
function isCommand(line: string): boolean {
  const [, first, ...words] = line.split(' ');
  if (first === 'doctor') return words.length === 0;
  const path = words.filter((word) => /^[a-z]+$/.test(word)).slice(0, 2);
  const command = commands.find(({ group, verb }) => `${group} ${verb}` === path.join(' '));
  const options = words.filter((word) => word.startsWith('--')).map((word) => word.slice(2));
  return first === 'admin' && command !== undefined && options.every((name) => name in command.options);
}

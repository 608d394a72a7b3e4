import {
  AxisPlacement,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  LegendPlacement,
  StackingConfigBuilder,
  StackingMode,
  VizLegendOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  MappingType,
  QueryVariableBuilder,
  RowBuilder,
  SpecialValueMatch,
  TextBoxVariableBuilder,
  type Threshold,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
  VariableRefresh,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as TextBuilder, TextMode } from '@grafana/grafana-foundation-sdk/text';
import { PanelBuilder as TimeSeriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import * as units from '@grafana/grafana-foundation-sdk/units';

// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const source = { type: 'prometheus', uid: '${datasource}' };

/** Text of a number that only a leading controller shows: without one it is missing, and that is a fault. */
export const noLeader = 'no leader';

export type Color = 'green' | 'yellow' | 'red';

/** One color up to each value: the first has none, because it begins at the bottom. */
export type Limits = readonly (readonly [from: number | null, color: Color])[];

export interface Panel {
  readonly kind: 'number' | 'lines' | 'stack' | 'table';
  readonly title: string;
  /** A sentence that says what good looks like. */
  readonly good: string;
  readonly unit: string;
  /** Each query with the legend of its series. */
  readonly queries: Readonly<Record<string, string>>;
  readonly limits?: Limits;
  /** Text in place of values that are not there: the reason for which a healthy system may have none. */
  readonly empty?: string;
  /** Lines of another unit, by their legend, which have an axis at the right. */
  readonly right?: Readonly<Record<string, string>>;
  /** Heading of the column of values of a table. */
  readonly column?: string;
  /** Text of the log lines that say more, to which a click on the panel leads. */
  readonly logs?: string;
  /** Words in place of the numbers 0, 1, 2 and so on. */
  readonly words?: readonly string[];
  /** Name of the dashboard to which a click on the panel leads. */
  readonly opens?: string;
}

export interface Board {
  /** Name of the file, and the end of the dashboard's id. */
  readonly name: string;
  readonly title: string;
  readonly about: string;
  /** True for a dashboard with a field for the id of a job. */
  readonly hasJob?: true;
  readonly rows: Readonly<Record<string, readonly Panel[]>>;
}

/** Lines and tables are half as wide as the page, numbers a third: their titles fit on a small screen. */
const sizes = { number: [8, 4], lines: [12, 8], stack: [12, 8], table: [12, 8] } as const;

export function makeDashboard(board: Board): Dashboard {
  const made = new DashboardBuilder(`Trawl / ${board.title}`)
    .uid(`trawl-${board.name}`)
    .description(board.about)
    .tags(['trawl'])
    .refresh('30s')
    .time({ from: 'now-6h', to: 'now' })
    .timezone('browser')
    .readonly()
    .tooltip(DashboardCursorSync.Crosshair)
    .withVariable(new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'))
    .withVariable(new DatasourceVariableBuilder('logs').label('Logs').type('loki'))
    .withVariable(
      new QueryVariableBuilder('namespace')
        .label('Namespace')
        .datasource(source)
        .query({ query: 'label_values(trawl_build_info, namespace)', refId: 'namespace' })
        .refresh(VariableRefresh.OnTimeRangeChanged)
        .includeAll(true)
        .allValue('.*'),
    )
    .link(
      new DashboardLinkBuilder('Trawl')
        .type(DashboardLinkType.Dashboards)
        .tags(['trawl'])
        .asDropdown(true)
        .keepTime(true),
    );
  if (board.hasJob) made.withVariable(new TextBoxVariableBuilder('job').label('Job id').defaultValue('JOB'));
  let id = 0;
  for (const [title, panels] of Object.entries(board.rows)) {
    made.withRow(new RowBuilder(title).id(++id));
    const halves = panels.filter(({ kind }) => kind !== 'number');
    // The last of an odd number of half-wide panels is as wide as the page.
    const lone = halves.length % 2 === 1 ? halves.at(-1) : undefined;
    for (const panel of panels) {
      const shown = makePanel(panel).id(++id);
      made.withPanel(panel === lone ? shown.span(24) : shown);
    }
  }
  if (board.hasJob) {
    made.withRow(new RowBuilder('One job').id(++id));
    made.withPanel(makeJobPanel().id(++id));
  }
  return made.build();
}

function makePanel(panel: Panel): StatBuilder | TableBuilder | TimeSeriesBuilder {
  const builder = builderOf(panel);
  const [span, height] = sizes[panel.kind];
  builder.title(panel.title).description(panel.good).unit(panel.unit).datasource(source).span(span).height(height);
  const steps = (panel.limits ?? [[null, 'green']]).map(([value, color]) => ({ value, color }) as Threshold);
  builder.thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps));
  if (panel.empty !== undefined) builder.noValue(panel.empty);
  if (panel.kind === 'number') builder.mappings(listWords(panel));
  if (panel.logs !== undefined) builder.links([makeLogLink('Logs', panel.logs)]);
  if (panel.opens !== undefined) builder.links([makeBoardLink(panel.title, panel.opens)]);
  for (const [query, legend] of Object.entries(panel.queries)) builder.withTarget(makeQuery(panel, query, legend));
  return builder;
}

/** Returns the words of a number. Grafana gives one that is missing the color of its lowest limit, which is often green. */
function listWords({ words = [], empty }: Panel): ValueMapping[] {
  const named = Object.fromEntries(words.map((text, value) => [String(value), { text, index: value }]));
  const missing = empty && { text: empty, color: empty === noLeader ? 'red' : 'text' };
  return [
    ...(words.length > 0 ? [{ type: MappingType.ValueToText, options: named } as const] : []),
    ...(missing
      ? [{ type: MappingType.SpecialValue, options: { match: SpecialValueMatch.Null, result: missing } } as const]
      : []),
  ];
}

/** A link to another dashboard, for the time and the namespaces that are shown. */
function makeBoardLink(title: string, name: string): DashboardLinkBuilder {
  return (
    new DashboardLinkBuilder(title)
      .type(DashboardLinkType.Link)
      // biome-ignore lint/suspicious/noTemplateCurlyInString: variables of Grafana
      .url(`/d/trawl-${name}?${'${__url_time_range}&${namespace:queryparam}'}`)
  );
}

/** A link to the log lines of the chosen namespaces that contain a text, in the time that is shown. */
function makeLogLink(title: string, text: string): DashboardLinkBuilder {
  const expr = `{namespace=~"$namespace"} |= ${JSON.stringify(text)}`;
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: variables of Grafana
  const queries = [{ refId: 'A', datasource: { type: 'loki', uid: '${logs}' }, expr }];
  const panes = { trawl: { datasource: '${logs}', queries, range: { from: '${__from}', to: '${__to}' } } };
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: variables of Grafana
  // Variables are put in by Grafana, which knows them only as they are written.
  const shown = encodeURIComponent(JSON.stringify(panes))
    .replaceAll('%24', '$')
    .replaceAll('%7B', '{')
    .replaceAll('%7D', '}');
  return new DashboardLinkBuilder(title)
    .type(DashboardLinkType.Link)
    .url(`/explore?schemaVersion=1&panes=${shown}`)
    .targetBlank(true);
}

/** The way from a job id, which callers and the log name, to all that is known of that job. */
function makeJobPanel(): TextBuilder {
  const command = 'trawl admin job explain $job';
  return new TextBuilder()
    .title('What became of one job')
    .description('Write the id of a job into the field Job id above.')
    .mode(TextMode.Markdown)
    .content(`\`${command}\` says all that is known of the job: each attempt, its log and its money.`)
    .links([makeLogLink('Logs of the job', '$job')])
    .span(24)
    .height(3);
}

function builderOf(panel: Panel): StatBuilder | TableBuilder | TimeSeriesBuilder {
  if (panel.kind === 'number') return new StatBuilder();
  if (panel.kind !== 'table') return makeGraph(panel);
  const options = { excludeByName: { Time: true }, renameByName: { Value: panel.column ?? 'Value' } };
  // Three columns fit into half of a small page.
  return new TableBuilder().minWidth(80).withTransformation({ id: 'organize', options });
}

function makeGraph({ kind, unit, limits = [], right = {} }: Panel): TimeSeriesBuilder {
  const legend = new VizLegendOptionsBuilder()
    .displayMode(LegendDisplayMode.List)
    .placement(LegendPlacement.Bottom)
    // Without this the SDK hides the legend, and lines have no names.
    .showLegend(true);
  const lines = new TimeSeriesBuilder().legend(legend).axisSoftMin(0);
  for (const [name, unit] of Object.entries(right)) {
    lines.overrideByName(name, [
      { id: 'unit', value: unit },
      { id: 'custom.axisPlacement', value: AxisPlacement.Right },
    ]);
  }
  const highest = limits.at(-1)?.[0];
  if (typeof highest === 'number') {
    const style = new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed);
    // The axis reaches to the limit, so that its line is seen.
    lines.thresholdsStyle(style).axisSoftMax(highest * 1.1);
  } else if (unit === units.Short) {
    // Grafana draws counts that are all 0 on an axis up to 100.
    lines.axisSoftMax(1);
  }
  if (kind === 'lines') return lines;
  return lines.fillOpacity(20).stacking(new StackingConfigBuilder().mode(StackingMode.Normal));
}

function makeQuery({ kind }: Panel, query: string, legend: string): DataqueryBuilder {
  const made = new DataqueryBuilder().expr(query).legendFormat(legend);
  if (kind === 'table') return made.instant().format(PromQueryFormat.Table);
  return kind === 'number' ? made.instant() : made.range();
}

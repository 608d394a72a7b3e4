import {
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
  QueryVariableBuilder,
  RowBuilder,
  type Threshold,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  VariableRefresh,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as TimeSeriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';

// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const source = { type: 'prometheus', uid: '${datasource}' };

/** One color up to each value: the first has none, because it begins at the bottom. */
export type Limits = readonly (readonly [from: number | null, color: 'green' | 'yellow' | 'red'])[];

export interface Panel {
  readonly kind: 'number' | 'lines' | 'stack' | 'table';
  readonly title: string;
  /** A sentence that says what good looks like. */
  readonly good: string;
  readonly unit: string;
  /** Each query with the legend of its series. */
  readonly queries: Readonly<Record<string, string>>;
  readonly limits?: Limits;
}

export interface Board {
  /** Name of the file, and the end of the dashboard's id. */
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly rows: Readonly<Record<string, readonly Panel[]>>;
}

/** Lines and tables are half as wide as the page, numbers a sixth. */
const sizes = { number: [4, 5], lines: [12, 8], stack: [12, 8], table: [12, 8] } as const;

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
  let id = 0;
  for (const [title, panels] of Object.entries(board.rows)) {
    made.withRow(new RowBuilder(title).id(++id));
    for (const panel of panels) made.withPanel(makePanel(panel).id(++id));
  }
  return made.build();
}

function makePanel(panel: Panel): StatBuilder | TableBuilder | TimeSeriesBuilder {
  const builder = builderOf(panel);
  const [span, height] = sizes[panel.kind];
  builder.title(panel.title).description(panel.good).unit(panel.unit).datasource(source).span(span).height(height);
  const steps = (panel.limits ?? [[null, 'green']]).map(([value, color]) => ({ value, color }) as Threshold);
  builder.thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps));
  for (const [query, legend] of Object.entries(panel.queries)) builder.withTarget(makeQuery(panel, query, legend));
  return builder;
}

function builderOf({ kind }: Panel): StatBuilder | TableBuilder | TimeSeriesBuilder {
  if (kind === 'number') return new StatBuilder();
  if (kind === 'table') return new TableBuilder();
  const legend = new VizLegendOptionsBuilder()
    .displayMode(LegendDisplayMode.List)
    .placement(LegendPlacement.Bottom)
    // Without this the SDK hides the legend, and lines have no names.
    .showLegend(true);
  const lines = new TimeSeriesBuilder().legend(legend);
  if (kind === 'lines') return lines;
  return lines.fillOpacity(20).stacking(new StackingConfigBuilder().mode(StackingMode.Normal));
}

function makeQuery({ kind }: Panel, query: string, legend: string): DataqueryBuilder {
  const made = new DataqueryBuilder().expr(query).legendFormat(legend);
  if (kind === 'table') return made.instant().format(PromQueryFormat.Table);
  return kind === 'number' ? made.instant() : made.range();
}

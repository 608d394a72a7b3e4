// Shows a dashboard with Grafana's own panel components. Grafana itself is not here: layout, queries, legends and the choice of the
// component are written below; formatting, thresholds, overrides and drawing are Grafana's.
import '@fontsource/inter/400.css';
import '@fontsource/inter/500.css';
import {
  applyFieldOverrides,
  createTheme,
  type DataFrame,
  type DataLink,
  dateTime,
  FieldConfigOptionsRegistry,
  type FieldConfigPropertyItem,
  type FieldConfigSource,
  FieldType,
  getDisplayValueAlignmentFactors,
  getFieldDisplayValues,
  identityOverrideProcessor,
  LoadingState,
  ThemeContext,
  toDataFrame,
  VizOrientation,
} from '@grafana/data';
import {
  BigValue,
  BigValueColorMode,
  BigValueGraphMode,
  BigValueJustifyMode,
  BigValueTextMode,
  GlobalStyles,
  PanelChrome,
  TimeSeries,
  VizRepeater,
} from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { Component, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';

interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat?: string;
  readonly instant?: boolean;
  readonly format?: string;
}

interface PanelModel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly Target[];
  readonly fieldConfig?: FieldConfigSource;
  readonly options?: Readonly<Record<string, unknown>> & {
    readonly content?: string;
    readonly legend?: object;
    readonly reduceOptions?: { readonly calcs?: string[] };
  };
  readonly links?: readonly DataLink[];
  readonly transformations?: readonly {
    readonly options: { readonly renameByName?: Readonly<Record<string, string>> };
  }[];
}

interface Board {
  readonly title: string;
  readonly panels: readonly PanelModel[];
}

interface Result {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: [number, string];
  readonly values: readonly [number, string][];
}

const asked = new URLSearchParams(location.search);
const [from, to] = [Number(asked.get('from')), Number(asked.get('to'))];
const scrapeSeconds = Number(asked.get('scrape'));
const wide = innerWidth - 16;
const theme = createTheme({ colors: { mode: asked.get('theme') === 'light' ? 'light' : 'dark' } });
const [rowPixels, gap, head] = [30, 8, 48];
const range = { from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } };
const variables: Readonly<Record<string, string>> = { namespace: '.*', datasource: 'prometheus', job: 'JOB' };
const report: { problems: string[]; shown: { title: string; series: number; points: number }[] } = {
  problems: [],
  shown: [],
};
/** Titles of the panels that have to be shown. */
const wanted = new Set<string>();

/** Options that the `fieldConfig` of a panel may hold; Grafana registers the same names in its own program. */
const options = 'unit decimals min max displayName noValue thresholds mappings color links description'.split(' ');
const ownOptions =
  'drawStyle lineWidth lineInterpolation fillOpacity gradientMode showPoints pointSize spanNulls stacking axisPlacement axisLabel axisSoftMin axisSoftMax scaleDistribution thresholdsStyle lineStyle barAlignment hideFrom align width cellOptions minWidth axisColorMode axisBorderShow axisCenteredZero insertNulls barWidthFactor inspect filterable'.split(
    ' ',
  );
const itemOf = (id: string, isCustom: boolean) =>
  ({
    ...{ id: isCustom ? `custom.${id}` : id, path: id, isCustom, name: id, description: id, settings: {} },
    ...{ editor: () => null, override: () => null, process: identityOverrideProcessor, shouldApply: () => true },
  }) as unknown as FieldConfigPropertyItem;
const registry = new FieldConfigOptionsRegistry(() => [
  ...options.map((id) => itemOf(id, false)),
  ...ownOptions.map((id) => itemOf(id, true)),
]);

/** Puts in what Grafana puts in for its variables. */
function fill(text: string, step: number): string {
  return text
    .replaceAll(/\$\{?__rate_interval\}?/g, `${Math.max(4 * scrapeSeconds, step + scrapeSeconds)}s`)
    .replaceAll(/\$\{?__range\}?/g, `${Math.round((to - from) / 1000)}s`)
    .replaceAll(/\$\{?(\w+)\}?/g, (all, name) => variables[name] ?? all);
}

async function ask(path: string, parameters: Readonly<Record<string, string>>): Promise<Result[]> {
  const answer = await fetch(`/prometheus/api/v1/${path}?${new URLSearchParams(parameters)}`);
  const { status, data, error } = await answer.json();
  if (status !== 'success') throw new Error(error);
  return data.result;
}

async function query(panel: PanelModel, width: number): Promise<DataFrame[]> {
  const step = Math.max(scrapeSeconds, Math.ceil((to - from) / 1000 / width));
  const frames: DataFrame[] = [];
  for (const target of panel.targets ?? []) {
    const expr = fill(target.expr, step);
    const isInstant = target.instant === true;
    const times = { start: String(from / 1000), end: String(to / 1000), step: String(step) };
    const asking = isInstant
      ? ask('query', { query: expr, time: String(to / 1000) })
      : ask('query_range', { query: expr, ...times });
    const found = await asking.catch((error) => {
      throw new Error(`the query ${expr} failed: ${error.message}`);
    });
    if (target.format === 'table') frames.push(tableOf(target, found, panel));
    else frames.push(...found.map((one) => frameOf(target, one, isInstant, step)));
  }
  return frames;
}

function tableOf({ refId }: Target, found: readonly Result[], { transformations }: PanelModel): DataFrame {
  const { Value: heading = 'Value' } = transformations?.[0]?.options.renameByName ?? {};
  const labels = [...new Set(found.flatMap(({ metric }) => Object.keys(metric)))].filter((one) => one !== '__name__');
  const fields = labels.map((name) => {
    return { name, type: FieldType.string, values: found.map(({ metric }) => metric[name] ?? '') };
  });
  const values = found.map(({ value }) => Number(value[1]));
  return toDataFrame({ refId, fields: [...fields, { name: heading, type: FieldType.number, values }] });
}

function frameOf({ refId, legendFormat, expr }: Target, one: Result, isInstant: boolean, step: number): DataFrame {
  const points = isInstant ? [one.value] : one.values;
  const name = legendFormat?.replaceAll(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => one.metric[label] ?? '') || expr;
  return toDataFrame({
    ...{ refId, name },
    fields: [
      {
        name: 'Time',
        type: FieldType.time,
        config: { interval: step * 1000 },
        values: points.map(([at]) => at * 1000),
      },
      {
        ...{ name: 'Value', type: FieldType.number, labels: one.metric, config: { displayNameFromDS: name } },
        values: points.map(([, value]) => Number(value)),
      },
    ],
  });
}

/** Adds the defaults that Grafana's own registry fills in where a dashboard says nothing. */
function withDefaults({ type, fieldConfig }: PanelModel): FieldConfigSource {
  const defaults = {
    ...{ mappings: [], color: { mode: type === 'timeseries' ? 'palette-classic' : 'thresholds' } },
    ...fieldConfig?.defaults,
    custom: {
      ...{ drawStyle: 'line', lineWidth: 1, fillOpacity: 0, showPoints: 'auto', pointSize: 5, spanNulls: false },
      ...{ lineInterpolation: 'linear', axisPlacement: 'auto', scaleDistribution: { type: 'linear' } },
      ...{ stacking: { mode: 'none', group: 'A' }, ...fieldConfig?.defaults?.custom },
    },
  };
  return { defaults, overrides: fieldConfig?.overrides ?? [] } as FieldConfigSource;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

function Body({ panel, frames, width, height }: Size & { panel: PanelModel; frames: DataFrame[] }): ReactNode {
  const fieldConfig = withDefaults(panel);
  const replaceVariables = (text: string) => fill(text, scrapeSeconds);
  const data = applyFieldOverrides({
    ...{ data: frames, fieldConfig, fieldConfigRegistry: registry, replaceVariables, theme, timeZone: 'utc' },
  });
  const points = frames.reduce((sum, frame) => sum + frame.length, 0);
  report.shown.push({ title: panel.title, series: frames.length, points });
  if (points === 0 && panel.type !== 'stat') {
    const place = { display: 'grid', placeItems: 'center', height, color: theme.colors.text.secondary };
    return <div style={place}>{panel.fieldConfig?.defaults?.noValue ?? 'No data'}</div>;
  }
  const shared = { width, height, timeRange: range, structureRev: 1 };
  if (panel.type === 'timeseries') {
    const legend = { showLegend: true, displayMode: 'list', placement: 'bottom', calcs: [], ...panel.options?.legend };
    return <TimeSeries {...shared} frames={data} timeZone="utc" legend={legend as never} />;
  }
  if (panel.type === 'table') {
    return (
      <div className="drawn-table" style={{ width, height }}>
        <TableNG
          {...{ ...shared, data: data[0]!, cellHeight: 'sm' as never, enableVirtualization: false }}
          getActions={() => []}
        />
      </div>
    );
  }
  const calcs = panel.options?.reduceOptions?.calcs;
  const reduceOptions = { calcs: calcs?.length ? calcs : ['lastNotNull'] };
  const values = getFieldDisplayValues({
    ...{ fieldConfig, reduceOptions, replaceVariables, theme, data, sparkline: false, timeZone: 'utc' },
  });
  return (
    <VizRepeater
      {...{ width, height, source: values, autoGrid: true, orientation: VizOrientation.Auto }}
      getValues={() => values}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      renderValue={({ value, count, width: wideOne, height: highOne }) => (
        <BigValue
          {...{ count, value: value.display, width: wideOne, height: highOne, theme }}
          colorMode={BigValueColorMode.Value}
          graphMode={BigValueGraphMode.None}
          justifyMode={BigValueJustifyMode.Auto}
          textMode={BigValueTextMode.Value}
        />
      )}
    />
  );
}

/** Keeps a panel that fails from taking the others with it. */
class Fence extends Component<{ title: string; children: ReactNode }, { error?: Error }> {
  override state: { error?: Error } = {};
  static getDerivedStateFromError(error: Error) {
    return { error };
  }
  override componentDidCatch(error: Error) {
    report.problems.push(`${this.props.title}: ${error.stack}`);
  }
  override render() {
    return this.state.error ? String(this.state.error) : this.props.children;
  }
}

interface Drawn {
  readonly panel: PanelModel;
  readonly place: Size & { readonly left: number; readonly top: number };
  readonly frames: DataFrame[];
  readonly error: string | undefined;
}

function Panel({ panel, place, frames, error }: Drawn): ReactNode {
  if (panel.type === 'row') {
    return <h2 style={{ font: '500 16px Inter', color: theme.colors.text.primary, padding: 4 }}>{panel.title}</h2>;
  }
  const text = panel.options?.content?.replaceAll('`', '').replaceAll('$job', 'JOB');
  return (
    <PanelChrome
      {...{ title: panel.title, description: panel.description ?? '', width: place.width, height: place.height }}
      {...(error && { statusMessage: error })}
      loadingState={error ? LoadingState.Error : LoadingState.Done}
    >
      {(width, height) => (
        <Fence title={panel.title}>
          {panel.type === 'text' ? text : <Body {...{ panel, frames, width, height }} />}
        </Fence>
      )}
    </PanelChrome>
  );
}

function hasData({ type }: PanelModel): boolean {
  return type !== 'row' && type !== 'text';
}

async function draw(panel: PanelModel): Promise<Drawn> {
  const { x, y, w, h } = panel.gridPos;
  const [columns, lines] = [wide / 24, rowPixels + gap];
  const place = { left: 8 + x * columns, top: head + y * lines, width: w * columns - gap, height: h * lines - gap };
  try {
    return { panel, place, frames: hasData(panel) ? await query(panel, place.width) : [], error: undefined };
  } catch (error) {
    const { message } = error as Error;
    report.problems.push(`${panel.title}: ${message}`);
    return { panel, place, frames: [], error: message };
  }
}

async function show(): Promise<void> {
  const board: Board = await (await fetch(asked.get('board') ?? '')).json();
  const drawn = await Promise.all(board.panels.map(draw));
  for (const { title } of board.panels.filter(hasData)) wanted.add(title);
  const height = Math.max(...drawn.map(({ place }) => place.top + place.height)) + gap;
  const title = { font: '500 20px Inter', padding: '10px 12px', color: theme.colors.text.primary };
  createRoot(document.getElementById('root')!).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <h1 style={title}>{board.title}</h1>
      <div style={{ height: height - head }} />
      {drawn.map((one) => (
        <div key={one.panel.id} style={{ position: 'absolute', ...one.place }}>
          <Panel {...one} />
        </div>
      ))}
    </ThemeContext.Provider>,
  );
}

Object.assign(globalThis, { report });
await show().catch((error) => report.problems.push(String(error.stack)));
// Charts are drawn after the layout and once more when their fonts are there; tables measure themselves first.
await document.fonts.ready;
const hasTables = () =>
  document.querySelectorAll('[role=grid]').length === document.querySelectorAll('.drawn-table').length;
const isFilled = () =>
  [...document.querySelectorAll('.drawn-table')].every((one) => one.querySelector('[role=gridcell]'));
const missing = () => [...wanted].filter((title) => !report.shown.some((one) => one.title === title));
const isWhole = () => missing().length === 0 && hasTables() && isFilled();
const end = performance.now() + 60_000;
while (!isWhole() && report.problems.length === 0 && performance.now() < end) await new Promise(requestAnimationFrame);
if (!isWhole() && report.problems.length === 0)
  report.problems.push(`a minute after its queries it does not show ${missing().join(', ') || 'a table'}`);
setTimeout(() => {
  document.title = 'drawn';
}, 600);

import { useAnswer } from '/answers.js';
import { count, html, Moment, Table, useEffect, useMemo, useRef, useState, Waiting } from '/elements.js';

const height = 200;
const dates = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });
const hours = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
/** Beginning and words of one bar. Days are those of UTC, as the record counts them; hours are shown in the reader's zone. */
const units = {
  days: {
    each: 'a day',
    now: 'Today',
    beginOf: ({ day }) => day,
    label: (time) => dates.format(time),
    column: ['Day (UTC)', ({ day }) => day],
    zone: ' days, UTC',
  },
  hours: {
    each: 'an hour',
    now: 'This hour',
    beginOf: ({ hour }) => hour,
    label: (time) => hours.format(time),
    column: ['Hour', ({ hour }) => html`<${Moment} at=${hour} />`],
    zone: ' hours',
  },
};
const callBars = [
  ['failed', 'bad', ({ failed }) => failed],
  ['completed', 'good', ({ completed }) => completed],
];
const callLine = ['calls in all', 'text', ({ calls }) => calls];
/** Charts by their subject: bars, drawn one over the other, and a line with a scale of its own. */
const charts = {
  credits: {
    title: 'Credits used',
    bars: [['used', 'accent', ({ credits }) => credits]],
    line: ['left', 'text', ({ remaining }) => remaining],
  },
  calls: { title: 'Calls', bars: callBars, line: callLine },
  hours: { title: 'Calls', unit: 'hours', bars: callBars, line: callLine },
};

const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 4 });

/** Returns a number of an axis, which has room for seven characters; '' for one that nothing is counted in. */
function axisNumber(value) {
  if (!Number.isInteger(value)) return '';
  return value < 100_000 ? count(value) : short.format(value);
}

let library;

/** Loads the library of the charts, when the first one is shown. */
function loadLibrary() {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = '/vendor/uplot.js';
    script.onload = () => resolve(window.uPlot);
    script.onerror = () => {
      library = undefined;
      reject(new Error('The chart cannot be shown: the server cannot be reached.'));
    };
    document.head.append(script);
  });
  return library;
}

/** Credits used on each of the last 30 days. */
export function Charts({ subjects, left }) {
  return html`<${ShownCharts} subjects=${subjects} answer=${useAnswer('/api/history')} left=${left} />`;
}

/** The same of an answer that was asked for. The server keeps it for a while: `left`, the credits of now, is newer. */
export function ShownCharts({ subjects, answer: { json, error, reload }, left }) {
  const shown = useMemo(() => json && { ...json, days: withLeft(json.days, left) }, [json, left]);
  if (!json) return html`<section class="card chart-space"><${Waiting} error=${error} reload=${reload} /></section>`;
  return html`<div class="charts">${subjects.map((subject) => html`<${Chart} ...${charts[subject]} rows=${shown[charts[subject].unit ?? 'days']} />`)}</div>`;
}

function withLeft(days, left) {
  return left === undefined ? days : [...days.slice(0, -1), { ...days.at(-1), remaining: left }];
}

function Chart({ title, unit = 'days', bars, line, rows }) {
  const words = units[unit];
  const [shown, setShown] = useState(null);
  const [failed, setFailed] = useState(null);
  const ref = useRef(null);
  useEffect(() => {
    let drawing = null;
    let isGone = false;
    const draw = async () => {
      const uPlot = await loadLibrary();
      if (isGone) return;
      drawing?.destroy();
      drawing = new uPlot(
        optionsOf(uPlot, ref.current, { bars, line, setShown, label: words.label }),
        columnsOf(rows, bars, line, words.beginOf),
        ref.current,
      );
    };
    const show = () => draw().catch(setFailed);
    const size = new ResizeObserver(() => drawing?.setSize({ width: ref.current.clientWidth, height }));
    const theme = matchMedia('(prefers-color-scheme: dark)');
    theme.addEventListener('change', show);
    size.observe(ref.current);
    void show();
    return () => {
      isGone = true;
      theme.removeEventListener('change', show);
      size.disconnect();
      drawing?.destroy();
    };
  }, [rows]);
  const series = [...bars.toReversed(), line];
  const row = rows[shown ?? rows.length - 1];
  const sum = (read) => count(rows.reduce((all, one) => all + read(one), 0));
  const told = bars.map(([name, , read]) => `${sum(read)} ${name}`).toReversed();
  const columns = [words.column, ...series.map(([name, , read]) => [name, (one) => count(read(one)), 'number'])];
  return html`<section class="card">
    <h2>${title} ${words.each}</h2>
    <p class="key">
      <b>${shown === null ? words.now : words.label(new Date(words.beginOf(row)))}</b>
      ${series.map(([name, colour, read]) => html`<span><i class=${colour}></i>${count(read(row))} ${name}</span>`)}
    </p>
    ${failed && html`<p class="bad" role="alert">${failed.message}</p>`}
    <div class="chart" ref=${ref} role="img" aria-label=${`${title} of the last ${rows.length} ${unit}: ${told.join(', ')}`}></div>
    <details>
      <summary>As a table</summary>
      <${Table} caption=${`${title} of the last ${rows.length}${words.zone}`} columns=${columns} rows=${rows.toReversed().map((one) => ({ ...one, id: words.beginOf(one) }))} none="" />
    </details>
  </section>`;
}

/** Bars overlap, so each is drawn with those that stand behind it. */
function columnsOf(rows, bars, line, beginOf) {
  const stacked = bars.map((_, n) => rows.map((one) => bars.slice(n).reduce((sum, [, , read]) => sum + read(one), 0)));
  return [rows.map((one) => Date.parse(beginOf(one)) / 1000), ...stacked, rows.map(line[2])];
}

function optionsOf(uPlot, element, { bars, line, setShown, label }) {
  const colour = (name) => colourOf(element, name);
  const axis = (scale, more = {}) => {
    const grid = { stroke: colour('line'), width: 1, show: scale !== 'line' };
    return { scale, stroke: colour('quiet'), grid, ticks: { show: false }, font: '12px system-ui', ...more };
  };
  const whole = (_, values) => values.map(axisNumber);
  return {
    width: element.clientWidth,
    height,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    legend: { show: false },
    cursor: { y: false, drag: { x: false } },
    scales: {
      // The first and the last bar are whole.
      x: { range: (_, least, most) => [least - (most - least) / 50, most + (most - least) / 50] },
      bars: { range: (_, _least, most) => [0, Math.max(4, most * 1.1)] },
      line: { range: (_, _least, most) => [0, Math.max(4, most * 1.1)] },
    },
    axes: [
      axis('x', { values: (_, seconds) => seconds.map((one) => label(one * 1000)), grid: { show: false } }),
      axis('bars', { values: whole, size: 56 }),
      axis('line', { values: whole, size: 56, side: 1 }),
    ],
    series: [
      {},
      ...bars.map(([, name]) => {
        return {
          scale: 'bars',
          fill: colour(name),
          width: 0,
          points: { show: false },
          paths: uPlot.paths.bars({ size: [0.6, 28] }),
        };
      }),
      { scale: 'line', stroke: colour(line[1]), width: 2, points: { show: false } },
    ],
    hooks: { setCursor: [({ cursor }) => setShown(cursor.idx ?? null)] },
  };
}

/** Returns a colour of the style sheet as a canvas knows it. */
function colourOf(element, name) {
  const probe = document.createElement('i');
  probe.className = name;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

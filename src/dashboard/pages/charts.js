import { count, html, Table, useAnswer, useEffect, useRef, useState, Waiting } from '/elements.js';

const height = 200;
const dates = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });
/** Charts by their subject: bars, drawn one over the other, and a line with a scale of its own. */
const charts = {
  credits: {
    title: 'Credits',
    bars: [['used', 'accent', ({ credits }) => credits]],
    line: ['left', 'text', ({ remaining }) => remaining],
  },
  calls: {
    title: 'Calls',
    bars: [
      ['failed', 'bad', ({ failed }) => failed],
      ['completed', 'good', ({ completed }) => completed],
    ],
    line: ['calls in all', 'text', ({ calls }) => calls],
  },
};

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

/** What was used on each of the last 30 days. */
export function Charts({ subjects }) {
  const { json, error, reload } = useAnswer('/api/history');
  if (!json) return html`<section class="card chart-space"><${Waiting} error=${error} reload=${reload} /></section>`;
  return html`<div class="charts">${subjects.map((subject) => html`<${Chart} ...${charts[subject]} days=${json.days} />`)}</div>`;
}

function Chart({ title, bars, line, days }) {
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
        optionsOf(uPlot, ref.current, { bars, line, setShown }),
        columnsOf(days, bars, line),
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
  }, [days]);
  const series = [...bars.toReversed(), line];
  const day = days[shown ?? days.length - 1];
  const sum = (read) => count(days.reduce((all, one) => all + read(one), 0));
  const told = bars.map(([name, , read]) => `${sum(read)} ${name}`).toReversed();
  const columns = [
    ['Day (UTC)', (one) => one.day],
    ...series.map(([name, , read]) => [name, (one) => count(read(one)), 'number']),
  ];
  return html`<section class="card">
    <h2>${title} a day</h2>
    <p class="key">
      <b>${shown === null ? 'Today' : dates.format(new Date(day.day))}</b>
      ${series.map(([name, colour, read]) => html`<span><i class=${colour}></i>${count(read(day))} ${name}</span>`)}
    </p>
    ${failed && html`<p class="bad" role="alert">${failed.message}</p>`}
    <div class="chart" ref=${ref} role="img" aria-label=${`${title} of the last ${days.length} days: ${told.join(', ')}`}></div>
    <details>
      <summary>As a table</summary>
      <${Table} caption=${`${title} of the last ${days.length} days, UTC`} columns=${columns} rows=${days.toReversed().map((one) => ({ ...one, id: one.day }))} none="" />
    </details>
  </section>`;
}

/** Bars overlap, so each is drawn with those that stand behind it. */
function columnsOf(days, bars, line) {
  const stacked = bars.map((_, n) => days.map((one) => bars.slice(n).reduce((sum, [, , read]) => sum + read(one), 0)));
  return [days.map(({ day }) => Date.parse(day) / 1000), ...stacked, days.map(line[2])];
}

function optionsOf(uPlot, element, { bars, line, setShown }) {
  const colour = (name) => colourOf(element, name);
  const axis = (scale, more = {}) => {
    const grid = { stroke: colour('line'), width: 1, show: scale !== 'line' };
    return { scale, stroke: colour('quiet'), grid, ticks: { show: false }, font: '12px system-ui', ...more };
  };
  const whole = (_, values) => values.map((value) => (Number.isInteger(value) ? count(value) : ''));
  return {
    width: element.clientWidth,
    height,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    legend: { show: false },
    cursor: { y: false, drag: { x: false } },
    scales: {
      bars: { range: (_, _least, most) => [0, Math.max(4, most * 1.1)] },
      line: { range: (_, _least, most) => [0, Math.max(4, most * 1.1)] },
    },
    axes: [
      axis('x', { values: (_, seconds) => seconds.map((one) => dates.format(one * 1000)), grid: { show: false } }),
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

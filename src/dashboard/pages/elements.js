import { ask, askFile, now, ofAccount } from '/server.js';
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '/vendor/preact.js';

export { html, useEffect, useMemo, useRef, useState };

const zone = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
/** 30 hours are a day, but not always yesterday. */
const relativeDays = new Intl.RelativeTimeFormat(undefined, { numeric: 'always' });
const steps = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
];
const numbers = new Intl.NumberFormat();

export function count(value) {
  return value === null || value === undefined ? '–' : numbers.format(value);
}

/** A moment in the reader's zone; the exact one in UTC is its title. */
export function Moment({ at, none = '–' }) {
  if (!at) return none;
  const time = new Date(at);
  const left = time.getTime() - now();
  const [unit, ms] = steps.find(([, size]) => Math.abs(left) >= size) ?? steps.at(-1);
  const words = unit === 'day' ? relativeDays : relative;
  const near = Math.abs(left) < 7 * 86_400_000 ? words.format(Math.round(left / ms), unit) : zone.format(time);
  return html`<time datetime=${at} title=${`${zone.format(time)} · ${at}`}>${near}</time>`;
}

export function bytes(value) {
  if (value === null || value === undefined) return '–';
  const units = ['B', 'kB', 'MB', 'GB'];
  let n = 0;
  for (; value >= 1000 && n < units.length - 1; n++) value /= 1000;
  return `${value < 10 && n > 0 ? value.toFixed(1) : Math.round(value)} ${units[n]}`;
}

/** Returns a function that asks for work which costs a credit: the same asked again after a failure is carried out once. */
export function useStart() {
  const last = useRef({});
  return async (path, body) => {
    const text = `${path} ${JSON.stringify(body)}`;
    if (last.current.text !== text) last.current = { text, key: randomKey() };
    const answer = await ask('POST', path, body, last.current.key);
    last.current = {};
    return answer;
  };
}

/** `crypto.randomUUID` is there over https alone. */
function randomKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Stands in place of a view that has nothing to show yet. */
export function Waiting({ error, reload }) {
  if (!error) return html`<p class="quiet" role="status">Loading …</p>`;
  return html`<div class="notice bad" role="alert">
    ${error.message} ${error.status !== 403 && html`<button type="button" onClick=${reload}>Try again</button>`}
  </div>`;
}

export function Notice({ kind = 'bad', children }) {
  return html`<div class=${`notice ${kind}`} role=${kind === 'bad' ? 'alert' : 'status'}>${children}</div>`;
}

/** A button that copies a text; none where the browser lets no page copy, such as at an address without https. */
export function Copy({ text }) {
  const [told, setTold] = useState({});
  if (!navigator.clipboard) return null;
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setTold({ text, words: 'Copied' }),
      () => setTold({ text, words: 'Not copied: select it' }),
    );
  return html`<button type="button" onClick=${copy}>${told.text === text ? told.words : 'Copy'}</button>`;
}

/** Runs one piece of work at a time; `error` is that of the last one. */
function useTurns() {
  const [error, setError] = useState(null);
  const [isRunning, setRunning] = useState(false);
  const run = async (work) => {
    if (isRunning) return;
    setRunning(true);
    setError(null);
    try {
      await work();
    } catch (failed) {
      setError(failed);
    } finally {
      setRunning(false);
    }
  };
  return { error, isRunning, run };
}

/** A link that saves a file; where the server refuses it, its sentence stands beside the link. */
export function FileLink({ path, name, kind = '', children }) {
  const { error, run } = useTurns();
  const save = async (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    await run(async () => {
      const link = document.createElement('a');
      link.href = URL.createObjectURL(await askFile(path));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    });
  };
  return html`<span
    ><a class=${kind} download=${name} href=${ofAccount(path)} onClick=${save}>${children}</a>
    ${error && html`<span class="bad" role="alert"> ${error.message}</span>`}</span
  >`;
}

/** Gives the focus to the page when the element that had it is gone, so that the keyboard goes on from there. */
function keepFocus() {
  setTimeout(() => {
    if (document.activeElement === document.body) document.getElementById('main')?.focus();
  });
}

/** A modal dialog that closes with Escape; the focus then returns to where it came from. */
export function Dialog({ title, onClose, children }) {
  const ref = useRef(null);
  // Before the next key is pressed.
  useLayoutEffect(() => {
    const dialog = ref.current;
    // The browser tells of a closed dialog a task later, when the next key may have opened another.
    const leave = (event) => {
      event.preventDefault();
      onClose();
    };
    dialog.addEventListener('cancel', leave);
    dialog.addEventListener('close', onClose);
    dialog.showModal();
    return () => {
      dialog.removeEventListener('close', onClose);
      // Gives the focus back, unless what had it is gone.
      dialog.close();
      keepFocus();
    };
  }, []);
  return html`<dialog ref=${ref} aria-label=${title}>
    <h2>${title}</h2>
    ${children}
  </dialog>`;
}

/** A dialog with a secret that is shown this once. */
export function SecretDialog({ title, secret, onClose, children }) {
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>Copy it now: it is shown this once.</p>
    <p class="secret"><code>${secret}</code><${Copy} text=${secret} /></p>
    ${children}
    <button class="main" onClick=${onClose}>Done</button>
  <//>`;
}

/** A form that sends once at a time and shows the sentence of a refusal beside its button; `more` stands behind that. */
export function Form({ onSend, button, row = false, more = null, children }) {
  const { error, isRunning: isSending, run } = useTurns();
  const send = async (event) => {
    event.preventDefault();
    await run(() => onSend(new FormData(event.target)));
  };
  return html`<form class=${row ? 'row' : ''} onSubmit=${send}>
    ${children}
    ${error && html`<${Notice}>${error.message}<//>`}
    <div class="actions"><button class="main" aria-disabled=${isSending}>${isSending ? 'One moment …' : button}</button>${more}</div>
  </form>`;
}

/** A button for one request at a time, which shows its refusal as its title and text. */
export function Action({ run, kind = '', confirm: question, children }) {
  const { error, isRunning, run: runOnce } = useTurns();
  const act = async () => {
    if (isRunning) return;
    if (question && !window.confirm(question)) return;
    await runOnce(run);
    keepFocus();
  };
  return html`<span
    ><button type="button" class=${kind} aria-disabled=${isRunning} onClick=${act}>${children}</button>
    ${error && html`<span class="bad" role="alert"> ${error.message}</span>`}</span
  >`;
}

export function Badge({ kind = '', children }) {
  return html`<span class=${`badge ${kind}`}>${children}</span>`;
}

/** Sentence of an empty page; `none` where it is the whole list. A page of a search looks through a part of the list. */
export function noneOf(none, cursor, next) {
  if (next) return 'None of those that were looked through fits; older ones may.';
  return cursor ? 'None of the older ones fits.' : none;
}

/** The way to the next page of a list; none behind the last one. */
export function Older({ path, chosen, cursor, children }) {
  if (!cursor) return null;
  return html`<p><a class="button" href=${`${path}?${new URLSearchParams({ ...chosen, cursor })}`}>${children}</a></p>`;
}

/** A table with a caption; `columns` are [title, cell of a row, class]. */
export function Table({ caption, columns, rows, none }) {
  if (rows.length === 0) return html`<p class="quiet">${none}</p>`;
  return html`<div class="scroll" role="region" aria-label=${caption} tabindex="0">
    <table>
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map(([title, , kind]) => html`<th class=${kind ?? ''} scope="col">${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr key=${row.id ?? row.name ?? row.entry ?? row.job ?? row.email}>
              ${columns.map(([title, cell, kind]) => html`<td class=${kind ?? ''} data-title=${title}>${cell(row)}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

import { useAnswer } from '/answers.js';
import { Action, Badge, count, Dialog, Form, html, Moment, SecretDialog, Table, useState, Waiting } from '/elements.js';
import { ask, now } from '/server.js';

/** The key that the server makes for downloads on the page Download. */
const isOwn = ({ alias, category }) => alias === 'dashboard' && category === 'by hand';

const windows = [
  ['total', 'Ever'],
  ['daily', '24 hours'],
  ['weekly', '7 days'],
  ['monthly', '30 days'],
];

/** The keys of the account; a secret is shown once. */
export function Keys({ may }) {
  const { json, error, reload, change } = useAnswer('/api/keys');
  const [edited, setEdited] = useState(null);
  const [made, setMade] = useState(null);
  if (!json) return html`<h1>Keys</h1><${Waiting} error=${error} reload=${reload} />`;
  const columns = [
    [
      'Alias',
      ({ alias, category }) =>
        html`<b>${alias}</b>${category && html`<br /><span class="quiet">${category}</span>`}${isOwn({ alias, category }) && html`<br /><span class="hint">made by the page Download for its files</span>`}`,
    ],
    ['State', (key) => html`<${State} ...${key} />`],
    ['Last used', ({ last_used_at }) => html`<${Moment} at=${last_used_at} none="never" />`],
    ['Calls', (key) => html`<${Quotas} ...${key} />`],
    ['Created', ({ created_at }) => html`<${Moment} at=${created_at} />`],
    ...(may.change
      ? [['Actions', (key) => html`<${KeyActions} ...${{ shown: key, change, reload, setEdited, setMade }} />`]]
      : []),
  ];
  return html`<h1>Keys</h1>
    <p class="lead">Programs send a key in the header <code>x-api-key</code>. The record keeps a hash of it, so nobody can show it again. A key that nobody of you made comes from the operator, who set the account up: ask before you change it.</p>
    ${may.change && html`<p><button class="main" onClick=${() => setEdited({})}>Create a key</button></p>`}
    <section class="card"><${Table} caption="Keys, oldest first" columns=${columns} rows=${json.keys} none="No key yet: create the first one." /></section>
    ${
      edited &&
      html`<${KeyDialog}
      shown=${edited}
      onClose=${() => setEdited(null)}
      onMade=${async (key) => {
        setEdited(null);
        setMade(key);
        await reload();
      }}
    />`
    }
    ${
      made &&
      html`<${SecretDialog} title=${`The secret of ${made.alias}`} secret=${made.key} onClose=${() => setMade(null)}>
      ${made.old && html`<p class="quiet">The old secret is now called ${made.old.alias} and ends <${Moment} at=${made.old.works_until} />.</p>`}
    <//>`
    }`;
}

function State({ active, expires, last_used_at }) {
  if (!active) return html`<${Badge}>inactive<//>`;
  const left = expires ? new Date(expires) - now() : Number.POSITIVE_INFINITY;
  if (left <= 0) return html`<${Badge} kind="bad">expired<//>`;
  if (left < 14 * 86_400_000) return html`<${Badge} kind="warn">ends <${Moment} at=${expires} /><//>`;
  const isIdle = last_used_at && now() - new Date(last_used_at) > 30 * 86_400_000;
  return html`<${Badge} kind="good">active<//>${isIdle && html`<br /><span class="quiet">unused for 30 days</span>`}`;
}

function Quotas({ used, quotas }) {
  return html`${windows.map(([name, title]) => {
    const max = quotas[name];
    if (max === null && name !== 'total') return null;
    return html`<div>
      ${name === 'total' && max === null ? '' : `${title}: `}${count(used[name])}${
        max !== null &&
        html` of ${count(max)}
        <progress max=${Math.max(1, max)} value=${Math.min(max, used[name])} aria-label=${`${title}: ${used[name]} of ${max}`}></progress>`
      }
    </div>`;
  })}`;
}

function KeyActions({ shown: key, change, reload, setEdited, setMade }) {
  const { alias, active, last_used_at } = key;
  const path = `/api/keys/${encodeURIComponent(alias)}`;
  const rotate = async () => {
    setMade(await ask('POST', `${path}/rotate`, {}));
    await reload();
  };
  return html`<div class="actions">
    <button type="button" onClick=${() => setEdited(key)}>Edit</button>
    <${Action} run=${() => change('PATCH', path, { active: !active })}>${active ? 'Deactivate' : 'Reactivate'}<//>
    <${Action} run=${rotate} confirm=${`Make a new secret for ${alias}? The old one works for 24 more hours, or stops at once if the key has quotas.`}>Rotate<//>
    ${
      last_used_at
        ? html`<span class="hint">was used, so its history keeps it: it can be deactivated, not deleted</span>`
        : html`<${Action} kind="danger" run=${() => change('DELETE', path)} confirm=${`Delete ${alias}? It was never used.`}>Delete<//>`
    }
  </div>`;
}

function KeyDialog({ shown: key, onClose, onMade }) {
  const isNew = key.alias === undefined;
  const lastDay = key.expires?.slice(0, 10) ?? '';
  const send = async (form) => {
    // Somebody else may have changed the rest since the dialog was opened.
    const given = windows.map(([name]) => [name, form.get(name) === '' ? null : Number(form.get(name))]);
    const body = { quotas: Object.fromEntries(given.filter(([name, max]) => max !== (key.quotas?.[name] ?? null))) };
    if (form.get('category') !== (key.category ?? '')) body.category = form.get('category');
    // The field knows no time of day.
    if (form.get('expires') !== lastDay) body.expires = form.get('expires') || null;
    if (isNew) return onMade(await ask('POST', '/api/keys', { alias: form.get('alias'), ...body }));
    await ask('PATCH', `/api/keys/${encodeURIComponent(key.alias)}`, body);
    return onMade(null);
  };
  return html`<${Dialog} title=${isNew ? 'Create a key' : `Edit ${key.alias}`} onClose=${onClose}>
    <${Form} button=${isNew ? 'Create' : 'Save'} onSend=${send} more=${html`<button type="button" onClick=${onClose}>Cancel</button>`}>
      ${isNew && html`<label>Alias <small>Unique in the account</small><input name="alias" required maxlength="100" /></label>`}
      <label>Category <small>For your own order, such as a project</small><input name="category" maxlength="100" defaultValue=${key.category ?? ''} /></label>
      <label>Last day <small>UTC; empty: for ever</small><input name="expires" type="date" defaultValue=${lastDay} /></label>
      <fieldset>
        <legend>Most calls; empty: no limit</legend>
        ${windows.map(
          ([name, title]) =>
            html`<label>${title}<input name=${name} type="number" min="0" step="1" defaultValue=${key.quotas?.[name] ?? ''} /></label>`,
        )}
      </fieldset>
    <//>
  <//>`;
}

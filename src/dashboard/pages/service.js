import { useAnswer } from '/answers.js';
import { Badge, count, Form, html, Moment, Notice, Table, Waiting } from '/elements.js';
import { ask } from '/server.js';

const kinds = { operational: 'good', degraded: 'warn', down: 'bad' };
const engineColumns = [
  ['Engine', ({ engine }) => engine],
  ['Health in the last hour', ({ health }) => html`<${Badge} kind=${kinds[health]}>${health}<//>`],
  ['Success', ({ success_rate }) => `${success_rate} %`, 'number'],
  ['Mean duration', ({ avg_response_time_ms: ms }) => `${count(Math.round(ms / 100) / 10)} s`, 'number'],
];
const blockColumns = [
  ['Address', ({ address }) => html`<span class="mono">${address}</span>`],
  ['Until', ({ until }) => html`<${Moment} at=${until} />`],
];

/** The whole service, for operators: no account is chosen for it. */
export function Service({ session }) {
  return session.user.operator
    ? html`<${Shown} />`
    : html`<h1>Service</h1><${Notice} kind="warn">Only operators see the whole service.<//>`;
}

function Shown() {
  const { json, error, reload } = useAnswer('/api/service');
  if (!json) return html`<h1>Service</h1><${Waiting} error=${error} reload=${reload} />`;
  const { engines, work, oldest_queued_at, drain_since, blocked, blocks } = json;
  return html`<h1>Service</h1>
    <p class="lead">All accounts together.</p>
    ${drain_since && html`<${Notice} kind="warn">A drain lasts since <${Moment} at=${drain_since} />: new jobs and calls get 503.<//>`}
    <div class="tiles">
      <div class="card">Queue <b>${count(work.queued)}</b><span class="quiet">${oldest_queued_at ? html`the oldest since <${Moment} at=${oldest_queued_at} />` : 'nothing waits'}</span></div>
      <div class="card">Workers <b>${count(work.running)}</b><span class="quiet">jobs that have one; ${count(work.delayed)} await another try</span></div>
      <div class="card">Calls in hand <b>${count(work.calls)}</b><span class="quiet">for metadata</span></div>
      <div class="card">Webhooks <b>${count(work.webhooks)}</b><span class="quiet">to be sent</span></div>
    </div>
    <section class="card"><${Table} caption="Engines" columns=${engineColumns} rows=${engines.map((one) => ({ ...one, id: one.engine }))} none="" /></section>
    <section class="card"><${Table} caption=${blocked > blocks.length ? `Blocked addresses: ${blocks.length} of ${count(blocked)}` : 'Blocked addresses'} columns=${blockColumns} rows=${blocks.map((one) => ({ ...one, id: one.address }))} none="No address is blocked." /></section>`;
}

/** Operators see every account, and change nothing. */
export function OperatorChoice({ session }) {
  const show = async (form) => {
    await ask('POST', '/api/session/account', { account: form.get('slug') });
    location.reload();
  };
  return html`<section class="card"><${Form} row button="Show" onSend=${show}>
    <label>Account shown <small>Operators read every account and change none.</small>
      <input name="slug" required placeholder=${session.account?.slug ?? 'slug'} />
    </label>
  <//></section>`;
}

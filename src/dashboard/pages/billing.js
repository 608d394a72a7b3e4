import { Charts } from '/charts.js';
import { Action, Badge, count, html, Moment, Table, useAnswer, Waiting } from '/elements.js';
import { ask } from '/server.js';
import { Shop } from '/topup.js';

/** Balances in the order in which they are drawn, packs, and the ledger. */
export function Billing({ may }) {
  const { json, error, reload } = useAnswer('/api/billing');
  if (!json) return html`<h1>Billing</h1><${Waiting} error=${error} reload=${reload} />`;
  const { usage, plan, ledger, purchases, spent, alerts } = json;
  if (!usage) return html`<h1>Billing</h1><p class="lead">Choose an account to look at.</p>`;
  const { packs, credits, period } = usage;
  const packColumns = [
    ['Pack', ({ title }) => title],
    ['Purchased', ({ purchased_at }) => html`<${Moment} at=${purchased_at} />`],
    [
      'Used',
      ({ used, total }) =>
        html`${count(used)} of ${count(total)} <progress max=${total} value=${used} aria-label=${`${used} of ${total} used`}></progress>`,
    ],
  ];
  const ledgerColumns = [
    ['Time', ({ at }) => html`<${Moment} at=${at} />`],
    ['What', ({ kind, reason }) => html`${kind}${reason && html` <span class="quiet">${reason}</span>`}`],
    ['Balance', ({ balance }) => balance],
    ['Credits', ({ kind, amount }) => `${kind === 'grant' ? '+' : '−'}${count(amount)}`, 'number'],
    ['Job', ({ job }) => (job ? html`<a href=${`/jobs/${job}`}><code>${job.slice(0, 8)}</code></a>` : '')],
  ];
  const purchaseColumns = [
    ['Time', ({ at }) => html`<${Moment} at=${at} />`],
    ['Pack', ({ pack, credits }) => `${pack}: ${count(credits)} credits`],
    ['Price', ({ price }) => price, 'number'],
    ['State', ({ state, reason }) => html`${state} ${reason && html`<span class="quiet">${reason}</span>`}`],
    [
      'Invoice',
      ({ id, invoice }) =>
        invoice && html`<a download href=${`/api/purchases/${encodeURIComponent(id)}/invoice.pdf`}>${invoice}</a>`,
    ],
  ];
  return html`<h1>Billing</h1>
    <p class="lead">A credit is taken when a file is there, first from the plan, then from packs, then from credits.</p>
    <div class="tiles">
      <div class="card">Left in all <b>${count(usage.remaining)}</b><span class="quiet">${count(usage.held)} held</span></div>
      <div class="card">Plan <b>${plan ? count(plan.quota) : '–'}</b><span class="quiet">${plan ? html`${plan.name}, until <${Moment} at=${period.end} />` : 'none'}</span></div>
      <div class="card">Packs <b>${count(packs?.remaining ?? 0)}</b><span class="quiet">of ${count(packs?.total ?? 0)}</span></div>
      <div class="card">Credits <b>${count(credits.remaining)}</b><span class="quiet">of ${count(credits.given)}</span></div>
    </div>
    ${packs && html`<section class="card"><${Table} caption="Packs, in the order in which they are used" columns=${packColumns} rows=${packs.items} none="" /></section>`}
    <${Charts} subjects=${['credits']} />
    <${Shop} ...${{ may, plan, spent, last: purchases.find(({ kind }) => kind === 'topup') }} />
    <${Alerts} ...${{ may, alerts, reload }} />
    <section class="card"><h2>Purchases</h2><${Table} caption="Packs that were bought, newest first" columns=${purchaseColumns} rows=${purchases} none="Nothing was bought yet." /></section>
    <section class="card"><${Table} caption="Ledger: the last 100 entries" columns=${ledgerColumns} rows=${ledger} none="Nothing has moved yet." /></section>`;
}

/** The mails about what is used, which owners may switch off. */
function Alerts({ may, alerts, reload }) {
  const change = async () => {
    await ask('PUT', '/api/alerts', { enabled: !alerts });
    await reload();
  };
  return html`<section class="card">
    <h2>Alerts <${Badge} kind=${alerts ? 'good' : ''}>${alerts ? 'on' : 'off'}<//></h2>
    <p>Owners get a mail when 50, 80, 90 and 100 % of the credits are used, each once until credits are added or the plan renews.</p>
    ${may.own && html`<p><${Action} run=${change}>${alerts ? 'Switch off' : 'Switch on'}<//></p>`}
  </section>`;
}

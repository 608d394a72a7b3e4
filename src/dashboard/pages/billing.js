import { useAnswer, useRepeat } from '/answers.js';
import { Charts } from '/charts.js';
import { Action, Badge, count, FileLink, html, Moment, Notice, Table, useState, Waiting } from '/elements.js';
import { Shop } from '/topup.js';

const balances = { subscription: 'plan', packs: 'packs', credits: 'single credits' };

/** Says why calls of the account are refused whatever credits it has; nothing where they are not. */
export function Stops({ invoice, suspended }) {
  return html`${suspended && html`<${Notice}>The account is suspended: every call answers 403. Ask the operator.<//>`}
    ${invoice === 'unpaid' && html`<${Notice} kind="warn">An invoice is unpaid: calls that cost a credit answer 402. Ask the operator.<//>`}`;
}

/** Balances in the order in which they are drawn, packs, and the ledger. */
export function Billing({ address, may }) {
  const { json, error, reload, change } = useAnswer('/api/billing');
  if (!json) return html`<h1>Billing</h1><${Waiting} error=${error} reload=${reload} />`;
  const { usage, plan, ledger, purchases, spent, alerts, mails, invoice, suspended } = json;
  const { packs, credits, period, subscription } = usage;
  // The contract counts packs with the plan.
  const ofPlan = {
    total: subscription.total - (packs?.total ?? 0),
    remaining: subscription.remaining - (packs?.remaining ?? 0),
  };
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
    ['Balance', ({ balance }) => balances[balance] ?? balance],
    [
      'Credits moved',
      ({ kind, amount }) => (kind === 'overdraft' ? '0' : `${kind === 'grant' ? '+' : '−'}${count(amount)}`),
      'number',
    ],
    ['Job', ({ job }) => (job ? html`<a href=${`/jobs/${job}`}><code>${job.slice(0, 8)}</code></a>` : '')],
  ];
  const purchaseColumns = [
    ['Time', ({ at }) => html`<${Moment} at=${at} />`],
    ['Pack', ({ pack, credits }) => html`<bdi>${pack}</bdi>: ${count(credits)} credits`],
    ['Price', ({ price }) => price, 'number'],
    ['State', ({ state, reason }) => html`${state} ${reason && html`<span class="quiet">${reason}</span>`}`],
    [
      'Invoice',
      ({ id, invoice }) =>
        invoice &&
        html`<${FileLink} name=${`${invoice}.pdf`} path=${`/api/purchases/${encodeURIComponent(id)}/invoice.pdf`}>${invoice}<//>`,
    ],
  ];
  return html`<h1>Billing</h1>
    <${Bought} ...${{ address, purchases, reload }} />
    <p class="lead">A credit is taken when a file is there, first from the plan, then from packs, then from single credits, which the operator gave without either.</p>
    <${Stops} ...${{ invoice, suspended }} />
    <div class="tiles">
      <div class="card">Credits left <b>${count(usage.remaining)}</b><span class="quiet">in all${usage.held > 0 && `, ${count(usage.held)} of them held for jobs in hand`}</span></div>
      <div class="card">Left of the plan <b>${plan ? count(ofPlan.remaining) : '–'}</b><span class="quiet">${plan ? html`of ${count(ofPlan.total)}, ${plan.name}, until <${Moment} at=${period.end} />` : 'no plan'}</span></div>
      <div class="card">Left of packs <b>${count(packs?.remaining ?? 0)}</b><span class="quiet">${packs ? `of ${count(packs.total)}` : 'no pack yet'}</span></div>
      <div class="card">Left of single credits <b>${count(credits.remaining)}</b><span class="quiet">${credits.given ? `of ${count(credits.given)}` : 'none given'}</span></div>
    </div>
    ${packs && html`<section class="card"><${Table} caption="Packs, in the order in which they are used" columns=${packColumns} rows=${packs.items} none="" /></section>`}
    <${Charts} subjects=${['credits']} left=${usage.remaining} />
    <${Shop} ...${{ may, account: { plan, invoice, suspended }, spent, last: purchases.find(({ kind }) => kind === 'topup') }} />
    <${Alerts} ...${{ may, alerts, mails, change }} />
    <section class="card"><h2>Purchases</h2><${Table} caption="Packs that were bought, newest first" columns=${purchaseColumns} rows=${purchases} none="Nothing was bought yet." /></section>
    <section class="card"><${Table} caption="Ledger: the last 100 entries" columns=${ledgerColumns} rows=${ledger} none="Nothing has moved yet." /></section>`;
}

const askAgainMs = 2_000;
const maxAsked = 30;

/** State of the purchase that the owner comes back from: the provider tells of it a moment after they are back. */
function Bought({ address, purchases, reload }) {
  const wanted = new URLSearchParams(address.split('?')[1] ?? '').get('bought');
  const [asked, setAsked] = useState(0);
  const found = wanted && purchases.find(({ id }) => id.endsWith(`-${wanted}`));
  const isAwaited = Boolean(wanted) && !found && asked < maxAsked;
  const askAgain = () => reload().then(() => setAsked(asked + 1));
  useRepeat(isAwaited, askAgain, askAgainMs);
  if (!wanted) return null;
  if (found?.state === 'paid')
    return html`<${Notice} kind="good">${found.pack} is paid: ${count(found.credits)} credits are added.<//>`;
  if (found) return html`<${Notice} kind="warn">This purchase is ${found.state}. ${found.reason}<//>`;
  return html`<${Notice} kind="warn">${
    isAwaited
      ? 'Waiting for the payment provider to confirm your payment …'
      : 'The payment provider has not confirmed a payment yet. The credits are added as soon as it does, and a mail brings the invoice.'
  }<//>`;
}

/** The mails about what is used, which owners may switch off. */
function Alerts({ may, alerts, mails, change }) {
  const turn = () => change('PUT', '/api/alerts', { enabled: !alerts });
  return html`<section class="card">
    <h2>Alerts <${Badge} kind=${alerts ? 'good' : ''}>${alerts ? 'on' : 'off'}<//></h2>
    <p>Owners get a mail when 50, 80, 90 and 100 % of the credits are used, each once until credits are added or the plan renews.</p>
    ${!mails && html`<p>This service has no mail server yet, so no mail comes.</p>`}
    ${may.own && html`<p><${Action} run=${turn}>${alerts ? 'Switch off' : 'Switch on'}<//></p>`}
  </section>`;
}

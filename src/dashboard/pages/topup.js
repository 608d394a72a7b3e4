import { useAnswer } from '/answers.js';
import { decimalsOf } from '/currency.js';
import { Action, Badge, count, Form, html, Moment, Notice, useState, Waiting } from '/elements.js';
import { ask, now } from '/server.js';

function price(cents, currency) {
  const decimals = decimalsOf(currency);
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return new Intl.NumberFormat(undefined, { style: 'currency', currency, ...digits }).format(cents / 10 ** decimals);
}

/** Packs that owners may buy at the page of the payment provider, and the automatic top-up, which buys one of them; `last`: what it bought last. */
export function Shop({ may, account, spent, last }) {
  const { json, error, reload } = useAnswer('/api/offers');
  const topup = useAnswer('/api/topup');
  if (!json) return html`<section class="card"><h2>Packs</h2><${Waiting} error=${error} reload=${reload} /></section>`;
  const hasCard = Boolean(topup.json?.payment_method);
  const leave = async (body) => location.assign((await ask('POST', '/api/checkout', body)).url);
  return html`<section class="card">
      <h2>Packs on offer</h2>
      ${json.offers.length === 0 && html`<p class="quiet">The operator offers none.</p>`}
      ${json.offers.map(
        ({ name, title, credits, price_cents, currency }) =>
          html`<p class="actions"><b>${title}</b> ${count(credits)} credits for ${price(price_cents, currency)}
            ${may.own && html`<${Action} run=${() => leave({ offer: name })}>Buy<//>`}</p>`,
      )}
      ${may.own && json.offers.length > 0 && html`<p class="hint">The card that pays first is stored at the payment provider. Nothing is charged to it by itself unless the automatic top-up is switched on.</p>`}
      ${hasCard && html`<p>A card is stored.</p>`}
      ${may.own && json.offers.length > 0 && html`<p><${Action} run=${() => leave({})}>${hasCard ? 'Store another card' : 'Store a card'}<//></p>`}
    </section>
    <${Topup} ...${{ may, account, spent, last, offers: json.offers, topup }} />`;
}

/** The rule of the automatic top-up as one sentence, and the form that changes it. */
function Topup({ may, account, spent, last, offers, topup: { json, error, reload } }) {
  const { plan } = account;
  const [saved, setSaved] = useState({ count: 0, isNow: false });
  if (!json)
    return html`<section class="card"><h2>Automatic top-up</h2><${Waiting} error=${error} reload=${reload} /></section>`;
  // Who has lost the paid plan can still switch it off.
  const isPossible = plan?.paid || json.enabled;
  const save = async (form, drawn) => {
    setSaved({ ...saved, isNow: false });
    const offer = offers.find(({ name }) => name === form.get('offer'));
    const chosen = {
      enabled: form.get('enabled') === 'on',
      threshold_percent: Number(form.get('threshold')),
      monthly_cap_cents: form.get('cap') === '' ? null : Number(form.get('cap')),
    };
    // Meanwhile a declined card may have switched it off, or another owner may have changed the rest.
    const changed = Object.entries(chosen).filter(([name, value]) => value !== drawn[name]);
    await ask('PUT', '/api/topup', {
      ...Object.fromEntries(changed),
      ...(offer &&
        !isSame(offer, drawn.pack) && {
          pack: { title: offer.title, total: offer.credits, price_cents: offer.price_cents, currency: offer.currency },
        }),
    });
    await reload();
    setSaved({ count: saved.count + 1, isNow: true });
  };
  return html`<section class="card">
    <h2>Automatic top-up <${Badge} kind=${json.enabled ? 'good' : ''}>${json.enabled ? 'on' : 'off'}<//></h2>
    <p>${sentenceOf(json, account, spent)}</p>
    ${
      !json.enabled &&
      last?.state === 'declined' &&
      html`<p>Its last purchase, <${Moment} at=${last.at} />, was declined, which switched it off: ${last.reason}</p>`
    }
    <${Spent} ...${{ spent, topup: json }} />
    ${saved.isNow && html`<${Notice} kind="good">Saved. Nothing is bought by saving.<//>`}
    ${may.own && !isPossible && html`<p class="quiet">The automatic top-up needs a paid plan. Plans are given by the operator of this service.</p>`}
    ${may.own && isPossible && html`<${Rule} key=${saved.count} ...${{ plan, offers, topup: json, onSend: save }} />`}
  </section>`;
}

/** The form of the rule, with what is chosen in credits and money. */
function Rule({ plan, offers, topup: read, onSend }) {
  const [topup] = useState(read);
  const [isOn, setOn] = useState(topup.enabled);
  const [percent, setPercent] = useState(topup.threshold_percent);
  const kept = offers.find((offer) => isSame(offer, topup.pack));
  const [chosen, setChosen] = useState(
    kept?.name ?? (topup.pack.title === null && offers.length === 1 ? offers[0].name : ''),
  );
  const [cap, setCap] = useState(topup.monthly_cap_cents ?? '');
  const offer = offers.find(({ name }) => name === chosen);
  const currency = offer?.currency ?? topup.pack.currency ?? offers[0]?.currency;
  const pack = offer?.credits ?? topup.pack.total ?? offers[0]?.credits;
  const quota = plan?.quota ?? 0;
  return html`<${Form} button="Save" onSend=${(form) => onSend(form, topup)}>
    <label class="check"><input type="checkbox" name="enabled" checked=${isOn} onChange=${(event) => setOn(event.target.checked)} />Buy a pack when little is left</label>
    <label>Below this share of the quota and one pack
      ${pack && html`<small>With ${count(quota)} credits of the plan and a pack of ${count(pack)}: when fewer than ${count(Math.ceil(((quota + pack) * percent) / 100))} credits are left</small>`}
      <select name="threshold" onChange=${(event) => setPercent(Number(event.target.value))}>
        ${[...new Set([10, 15, 20, 25, 30, topup.threshold_percent])].sort((a, b) => a - b).map((n) => html`<option value=${n} selected=${n === percent}>${n} %</option>`)}
      </select></label>
    <label>Pack<select name="offer" required=${isOn && topup.pack.title === null} onChange=${(event) => setChosen(event.target.value)}>
      ${!kept && html`<option value="" selected=${chosen === ''}>${topup.pack.title === null ? 'Choose one' : `${isolated(topup.pack.title)}, which is on offer no more`}</option>`}
      ${offers.map(({ name, title, credits, price_cents, currency: unit }) => html`<option value=${name} selected=${name === chosen}>${isolated(title)}: ${count(credits)} credits for ${price(price_cents, unit)}</option>`)}
    </select></label>
    ${!read.payment_method && html`<p class="hint">It needs a stored card too: see Packs on offer.</p>`}
    <label>At most in a month <small>In the smallest unit of the currency, such as cents; empty: no limit</small>
      <input name="cap" type="number" min="1" step="1" value=${cap} onInput=${(event) => setCap(event.target.value)} />
      ${currency && html`<small>${cap === '' ? 'No limit' : `${price(Number(cap), currency)} a month`}</small>`}</label>
  <//>`;
}

/** Returns a title between marks of isolation, which do in an option what `bdi` does elsewhere: a Hebrew one leaves the numbers behind it. */
function isolated(title) {
  return `\u2068${title}\u2069`;
}

function isSame({ title, credits, price_cents, currency }, pack) {
  return (
    title === pack.title && credits === pack.total && price_cents === pack.price_cents && currency === pack.currency
  );
}

function sentenceOf(topup, { plan, invoice, suspended }, spent) {
  const { enabled, threshold_percent, pack, monthly_cap_cents, next_possible_at } = topup;
  if (!enabled) return 'Nothing is bought by itself.';
  if (!plan?.paid) return 'It buys nothing: the account has no paid plan.';
  if (suspended) return 'It buys nothing while the account is suspended.';
  if (invoice === 'unpaid') return 'It buys nothing while an invoice is unpaid.';
  const cap = monthly_cap_cents === null ? '' : `, at most ${price(monthly_cap_cents, pack.currency)} a month`;
  return html`Below ${threshold_percent} % of the quota and one pack it buys ${count(pack.total)} credits for ${price(pack.price_cents, pack.currency)}${cap}${
    Date.parse(next_possible_at) > now() && html`; next possible <${Moment} at=${next_possible_at} />`
  }.${cap && spentBy(topup, spent) + pack.price_cents > monthly_cap_cents && ' It buys nothing now, because another pack would pass this cap.'}`;
}

/** Returns what the automatic top-up has paid this month in the currency of its pack. */
function spentBy({ pack }, spent) {
  return spent.find(({ currency }) => currency === pack.currency)?.topup_cents ?? 0;
}

/** Money paid since the beginning of the month, beside the cap of the automatic top-up. */
function Spent({ spent, topup }) {
  const { monthly_cap_cents: cap, pack } = topup;
  const own = spentBy(topup, spent);
  const all = spent.map(({ cents, currency }) => price(cents, currency)).join(' and ');
  const words =
    cap === null || pack.currency === null
      ? ''
      : `${price(own, pack.currency)} of ${price(cap, pack.currency)} by the top-up`;
  return html`<p>
    Paid this month (UTC): <b>${all || 'nothing'}</b>${
      words && html`, ${words} <progress max=${cap} value=${Math.min(own, cap)} aria-label=${words}></progress>`
    }
  </p>`;
}

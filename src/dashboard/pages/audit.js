import { useAnswer } from '/answers.js';
import { html, Moment, Table, Waiting } from '/elements.js';

const columns = [
  ['Time', ({ at }) => html`<${Moment} at=${at} />`],
  ['Who', ({ who }) => who],
  ['From', ({ from }) => from],
  ['Change', ({ action }) => html`<code class="whole">${action}</code>`],
  ['Of', ({ target }) => target],
  ['To', ({ change }) => listed(change)],
];

/** Changes in the account and their authors; owners and operators see it. */
export function Audit({ address }) {
  const before = new URLSearchParams(address.split('?')[1] ?? '').get('before');
  const { json, error, reload } = useAnswer(`/api/audit?${new URLSearchParams(before ? { before } : {})}`);
  return html`<h1>Audit log</h1>
    <p class="lead">Who changed keys, people, webhooks, plans and the automatic top-up, and from where, newest first. Changes are kept for a year. What was bought stands under <a href="/billing">Billing</a>.</p>
    <section class="card">
      ${
        json
          ? html`<${Table} caption="Changes" columns=${columns} rows=${json.changes} none="Nothing was changed yet." />
            ${json.next && html`<p><a class="button" href=${`/audit?before=${json.next}`}>Older changes</a></p>`}`
          : html`<${Waiting} error=${error} reload=${reload} />`
      }
    </section>`;
}

function listed(change) {
  const given = Object.entries(change).filter(([, value]) => value !== '' && value !== null);
  return given
    .map(([name, value]) => `${name} ${typeof value === 'object' ? `(${listed(value) || 'none'})` : value}`)
    .join(', ');
}

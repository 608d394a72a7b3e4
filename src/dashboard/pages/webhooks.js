import { usePage } from '/answers.js';
import { Action, Badge, html, Moment, noneOf, Older, SecretDialog, Table, useState, Waiting } from '/elements.js';
import { ReceiverForm } from '/receiver-test.js';
import { ask } from '/server.js';

const kinds = { delivered: 'good', failed: 'bad', due: 'warn' };

/** A link to a job; a batch has no page of its own. */
function nameOf({ job, kind }) {
  const id = html`<code>${job.slice(0, 8)}</code>`;
  return kind === 'batch' ? html`batch ${id}` : html`<a href=${`/jobs/${job}`}>${id}</a>`;
}

/** Deliveries of the account's webhooks and the secret that signs them. */
export function Webhooks({ address, may }) {
  const { json, error, reload, change, chosen, cursor } = usePage('/api/webhooks', address, ['failed']);
  const isFailed = chosen.failed === 'true';
  const [secret, setSecret] = useState(null);
  if (!json) return html`<h1>Webhooks</h1><${Waiting} error=${error} reload=${reload} />`;
  const renew = async () => {
    setSecret((await ask('POST', '/api/webhooks/secret', {})).webhook_secret);
    await reload();
  };
  const columns = [
    ['Job or batch', nameOf],
    ['Receiver', ({ url }) => html`<span class="mono">${url}</span>`],
    [
      'State',
      ({ status, last_status }) =>
        html`<${Badge} kind=${kinds[status]}>${status}<//> ${last_status && html`<span class="quiet">answered ${last_status}</span>`}`,
    ],
    ['Attempts', ({ attempts }) => attempts, 'number'],
    ['Last', ({ last_at }) => html`<${Moment} at=${last_at} />`],
    ...(may.change
      ? [
          [
            'Actions',
            ({ job, status }) =>
              status !== 'due' &&
              html`<${Action} run=${() => change('POST', `/api/webhooks/${job}/replay`, {})}>Send again<//>`,
          ],
        ]
      : []),
  ];
  return html`<h1>Webhooks</h1>
    <p class="lead">A job or a batch tells the address in its <code>webhook_url</code> how it ended, and tries again a few times when that fails. Bodies are not kept.</p>
    ${
      may.change &&
      html`<section class="card">
      <h2>Signing secret</h2>
      <p>With a secret every delivery carries the headers of Standard Webhooks. ${json.signed ? 'A secret is set.' : 'None is set.'}</p>
      <div class="actions">
        <${Action} run=${renew} confirm=${json.signed && 'Make a new secret? Deliveries are signed with it from now on, and with no other.'}>${json.signed ? 'Make a new secret' : 'Make a secret'}<//>
        ${json.signed && html`<${Action} kind="danger" run=${() => change('DELETE', '/api/webhooks/secret')} confirm="Send webhooks without a signature from now on?">Remove it<//>`}
      </div>
    </section>
    <${ReceiverForm} />`
    }
    <p><a href=${isFailed ? '/webhooks' : '/webhooks?failed=true'}>${isFailed ? 'Show all' : 'Show failed ones only'}</a></p>
    <section class="card">
      <${Table} caption="Deliveries, newest first" columns=${columns} rows=${json.webhooks} none=${noneOf(isFailed ? 'No webhook has failed.' : 'No webhook yet.', cursor, json.next_cursor)} />
      <${Older} path="/webhooks" chosen=${chosen} cursor=${json.next_cursor}>Older webhooks<//>
    </section>
    ${secret && html`<${SecretDialog} title="The signing secret" secret=${secret} onClose=${() => setSecret(null)} />`}`;
}

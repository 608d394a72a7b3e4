import { useAnswer, usePage } from '/answers.js';
import { Charts } from '/charts.js';
import { Badge, FileLink, html, Moment, noneOf, Older, Table, useEffect, useState, Waiting } from '/elements.js';

const filters = ['key', 'status', 'day', 'text'];
const statuses = ['2xx', '4xx', '5xx', '402', '429'];

/** The request log with filters; the address holds them, so a view can be shared. */
export function Requests({ address, go }) {
  const { json, error, reload, chosen, cursor } = usePage('/api/requests', address, filters);
  const [typed, setTyped] = useState(chosen);
  useEffect(() => setTyped(chosen), [address]);
  const type = ({ target }) => setTyped({ ...typed, [target.name]: target.value });
  const { json: keys } = useAnswer('/api/keys');
  const search = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const wanted = filters.flatMap((name) => (form.get(name) ? [[name, form.get(name)]] : []));
    go(`/requests?${new URLSearchParams(wanted)}`);
  };
  const columns = [
    ['Time', ({ at }) => html`<${Moment} at=${at} />`],
    ['Endpoint', ({ endpoint }) => html`<code>${endpoint}</code>`],
    [
      'Status',
      ({ status }) => html`<${Badge} kind=${status < 400 ? 'good' : status < 500 ? 'warn' : 'bad'}>${status}<//>`,
    ],
    ['Duration', ({ duration_ms }) => `${duration_ms} ms`, 'number'],
    ['Address', ({ ip }) => ip],
    ['Credits used', ({ credits }) => credits, 'number'],
    ['Key', ({ key }) => key],
  ];
  return html`<h1>Requests</h1>
    <p class="lead">What programs asked with your keys, newest first. A job has two lines, one when it was asked for and one when it ended, and counts as one call. Times are yours; hold the pointer over one for UTC.</p>
    <${Charts} subjects=${['calls']} />
    <form class="row card" onSubmit=${search}>
      <${Choice} ...${{ title: 'Key', name: 'key', values: keys?.keys.map(({ alias }) => alias) ?? [], value: typed.key, type }} />
      <${Choice} ...${{ title: 'Status', name: 'status', values: statuses, value: typed.status, type }} />
      <label>Day (UTC)<input name="day" type="date" value=${typed.day ?? ''} onInput=${type} /></label>
      <label>Text<input name="text" value=${typed.text ?? ''} onInput=${type} placeholder="endpoint, address" /></label>
      <button class="main">Search</button>
      <${FileLink} kind="button" name="requests.csv" path=${`/api/requests.csv?${new URLSearchParams(chosen)}`}>CSV<//>
    </form>
    <section class="card">
      ${
        json
          ? html`<${Table} caption="Requests" columns=${columns} rows=${json.requests} none=${noneOf('No request fits.', cursor, json.next_cursor)} />
            <${Older} path="/requests" chosen=${chosen} cursor=${json.next_cursor}>Older requests<//>`
          : html`<${Waiting} error=${error} reload=${reload} />`
      }
    </section>`;
}

/** A list to choose from, with what is chosen, be it in the list or not. */
function Choice({ title, name, values, value = '', type }) {
  const all = new Set(['', ...values, value]);
  return html`<label>${title}<select name=${name} value=${value} onChange=${type}>${[...all].map((one) => html`<option value=${one}>${one || 'All'}</option>`)}</select></label>`;
}

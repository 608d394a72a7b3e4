import { useAnswer, usePage, useRepeat } from '/answers.js';
import {
  Action,
  Badge,
  bytes,
  html,
  Moment,
  Notice,
  noneOf,
  Older,
  Table,
  useEffect,
  useStart,
  useState,
  Waiting,
} from '/elements.js';
import { JobReceiver } from '/receiver-test.js';
import { ofAccount } from '/server.js';

const kinds = { CompletedJob: 'good', Running: 'warn', QueuedJob: '' };
const names = {
  CompletedJob: 'completed',
  Running: 'running',
  QueuedJob: 'waiting',
  Error: 'failed',
  NotFound: 'not found',
  BadRequest: 'refused',
};

export function Status({ job: { status, error_code } }) {
  if (error_code === 'cancelled') return html`<${Badge}>cancelled<//>`;
  return html`<${Badge} kind=${kinds[status] ?? 'bad'}>${names[status] ?? status}<//>`;
}

/** Progress of a job; its file as a link, or as a `button` where a person waits for it. */
export function Progress({ job, kind = '' }) {
  if (job.status === 'QueuedJob') return html`<span class="quiet">${job.queue?.reason}</span>`;
  if (job.status === 'Running') {
    const words = [
      job.stage,
      job.speed_bytes && `${bytes(job.speed_bytes)}/s`,
      job.eta_seconds && `${job.eta_seconds} s left`,
    ];
    return html`<progress max="100" value=${job.progress} aria-label=${`${job.progress} %`}></progress>
      <span class="quiet">${job.progress} % ${words.filter(Boolean).join(' · ')}</span>`;
  }
  if (job.status === 'CompletedJob') {
    const { response, bytes: size } = job.result ?? {};
    if (size === undefined) return html`<span class="quiet">its result is metadata, without a file</span>`;
    return response
      ? html`<a class=${kind} href=${response} download>Save the file</a> <span class="quiet">${bytes(size)}</span>`
      : html`<span class="quiet">its file is gone</span>`;
  }
  return html`<span class="bad">${job.error}</span>`;
}

/** Returns the title of a job's film, which sources may leave empty, or without anything that can be seen. */
export function titleOf(job, none = job.args.query) {
  const title = job.result?.metadata?.title ?? '';
  return /[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(title) ? title.trim() : none;
}

export function isOpen({ status }) {
  return status === 'QueuedJob' || status === 'Running';
}

/** The jobs of the account; the newest ones move by themselves. */
export function Jobs({ address }) {
  const { json, error, reload, chosen, cursor } = usePage('/api/jobs', address, ['status']);
  const { status = '' } = chosen;
  const isLive = status === '' && !cursor;
  const live = useLiveJobs(isLive, reload, json);
  useRepeat(!isLive && (isOpen({ status }) || Boolean(json?.jobs.some(isOpen))), reload, 2_000);
  if (!json) return html`<h1>Jobs</h1><${Waiting} error=${error} reload=${reload} />`;
  const { jobs, next_cursor } = live ?? json;
  const columns = [
    [
      'Job',
      (job) =>
        html`<a href=${`/jobs/${job.id}`}>${titleOf(job)}</a><br /><span class="quiet">${job.endpoint.split('/')[2]}</span>`,
    ],
    ['Status', (job) => html`<${Status} job=${job} />`],
    ['Progress', (job) => html`<${Progress} job=${job} />`],
    ['Created', (job) => html`<${Moment} at=${job.created_at} />`],
  ];
  return html`<h1>Jobs</h1>
    <p class="lead">Newest first. <a href="/download">Start one by hand</a>.</p>
    <nav aria-label="Status"><ul class="actions">
      ${[['', 'All'], ...Object.entries(names)].map(
        ([value, name]) =>
          html`<li><a href=${value ? `/jobs?status=${value}` : '/jobs'} aria-current=${value === status ? 'page' : undefined}>${name}</a></li>`,
      )}
    </ul></nav>
    <section class="card">
      <${Table} caption="Jobs of this account" columns=${columns} rows=${jobs} none=${noneOf(status ? 'No job has this status.' : 'No job yet.', cursor, next_cursor)} />
      <${Older} path="/jobs" chosen=${chosen} cursor=${next_cursor}>Older jobs<//>
    </section>`;
}

/** Returns the jobs that the stream told last, until it has broken and `json` is a later answer; `null` then. */
function useLiveJobs(isOn, reload, json) {
  const [live, setLive] = useState(null);
  useEffect(() => {
    setLive(null);
    if (!isOn) return;
    let source;
    let timer;
    const open = () => {
      source = new EventSource(ofAccount('/api/jobs/events'));
      source.addEventListener('jobs', (event) => setLive(JSON.parse(event.data)));
      source.addEventListener('error', () => {
        // The browser opens a stream that broke again by itself, but not one that was refused. Meanwhile the list may be old.
        if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, 5_000);
        setLive((last) => last && { ...last, isOld: true });
        void reload();
      });
    };
    open();
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [isOn, reload]);
  useEffect(() => setLive((last) => (last?.isOld ? null : last)), [json]);
  return live;
}

/** One job as a timeline. */
export function Job({ id, may, go }) {
  const { json: job, error, reload, change } = useAnswer(`/api/jobs/${id}`);
  const start = useStart();
  useRepeat(job !== null && isOpen(job), reload, 2_000);
  if (error?.status === 404)
    return html`<h1>Job</h1>
      <p>There is no such job any more: a record is kept for a while after the end of its job. A call for metadata that was answered at once had none.</p>`;
  if (!job) return html`<h1>Job</h1><${Waiting} error=${error} reload=${reload} />`;
  const retry = async () => go(`/jobs/${(await start(`/api/jobs/${id}/retry`, {})).job_id}`);
  return html`<h1>${titleOf(job)}</h1>
    <p class="lead"><${Status} job=${job} /> <code>${job.id}</code></p>
    <section class="card">
      ${job.error ? '' : html`<p><${Progress} job=${job} /></p>`}
      ${job.error && html`<${Notice}>${job.error}${job.error_code !== 'cancelled' && html` <span class="quiet">(${job.error_code}${job.retryable ? ', may pass on another try' : ''})</span>`}<//>`}
      <p class="quiet mono">${job.args.query}</p>
      ${
        may.change &&
        html`<div class="actions">
        ${
          isOpen(job)
            ? html`<${Action} kind="danger" run=${() => change('DELETE', `/api/jobs/${id}`)} confirm="Cancel this job? Nothing is charged for it.">Cancel<//>`
            : html`<${Action} run=${retry}>Start it again<//>`
        }
        ${job.timeline.some(({ source }) => source === 'webhook') && html`<${Action} run=${() => change('POST', `/api/webhooks/${id}/replay`, {})}>Send its webhook again<//>`}
        ${job.args.webhook_url && html`<${JobReceiver} id=${id} />`}
      </div>`
      }
    </section>
    <section class="card">
      <h2>What happened</h2>
      <ol class="timeline">
        ${job.timeline.map(({ at, source, text }) => html`<li class=${source}><b>${text}</b><br /><span class="quiet">${source} · <${Moment} at=${at} /></span></li>`)}
      </ol>
    </section>`;
}

import { Charts } from '/charts.js';
import { count, html, Moment, Notice, useAnswer, Waiting } from '/elements.js';
import { Status } from '/jobs.js';

/** What the account has, how its jobs went, and on which day it runs out at the present rate. */
export function Overview({ session }) {
  const billing = useAnswer('/api/billing');
  const jobs = useAnswer('/api/jobs?limit=100');
  const title = html`<h1>${session.account?.name ?? 'trawl'}</h1>`;
  if (!billing.json || !jobs.json) {
    return html`${title}<${Waiting} error=${billing.error ?? jobs.error} reload=${() => Promise.all([billing.reload(), jobs.reload()])} />`;
  }
  const { usage, plan, invoice, suspended, ledger } = billing.json;
  if (!usage) return html`${title}<p class="lead">Choose an account to look at.</p>`;
  const ended = jobs.json.jobs.filter(({ status }) => status !== 'QueuedJob' && status !== 'Running');
  const good = ended.filter(({ status }) => status === 'CompletedJob').length;
  const failed = ended.filter(({ success, error_code }) => success === false && error_code !== 'cancelled').slice(0, 5);
  return html`${title}
    <p class="lead">${plan ? `Plan ${plan.name}` : 'No plan'}${usage.renewal_date && html`, renewed <${Moment} at=${usage.renewal_date} />`}</p>
    ${suspended && html`<${Notice}>The account is suspended: every call answers 403. Ask the operator.<//>`}
    ${invoice === 'unpaid' && html`<${Notice} kind="warn">An invoice is unpaid: calls that cost a credit answer 402.<//>`}
    <div class="tiles">
      <div class="card">Credits left <b>${count(usage.remaining)}</b><span class="quiet">${count(usage.held)} held for jobs in hand</span></div>
      <div class="card">Used in all <b>${count(usage.total_used)}</b><span class="quiet">${runsOut(usage.remaining, ledger)}</span></div>
      <div class="card">Completed <b>${ended.length ? `${Math.round((100 * good) / ended.length)} %` : '–'}</b><span class="quiet">of the last ${count(ended.length)} jobs</span></div>
    </div>
    <${Charts} subjects=${['credits', 'calls']} />
    <section class="card">
      <h2>What failed lately</h2>
      ${
        failed.length === 0
          ? html`<p class="quiet">Nothing among the last ${ended.length} jobs.</p>`
          : html`<ul>
            ${failed.map((job) => html`<li><a href=${`/jobs/${job.id}`}>${job.args.query}</a> <${Status} status=${job.status} /> ${job.error}</li>`)}
          </ul>`
      }
    </section>
    ${jobs.json.jobs.length === 0 && html`<section class="card"><h2>Begin</h2><p>Make a <a href="/keys">key</a> for a program, or <a href="/download">download a file</a> by hand.</p></section>`}`;
}

/** Says when the credits end at the rate of the charges in the ledger. */
function runsOut(remaining, ledger) {
  const charges = ledger.filter(({ kind }) => kind === 'charge');
  const oldest = charges.at(-1);
  if (!oldest || charges.length < 2) return 'too few charges to say when they end';
  const days = Math.max((Date.now() - new Date(oldest.at)) / 86_400_000, 1 / 24);
  const left = remaining / (charges.length / days);
  if (left > 730) return 'enough for more than two years at this rate';
  return `at this rate until ${new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' }).format(Date.now() + left * 86_400_000)}`;
}

import { useAnswer } from '/answers.js';
import { Stops } from '/billing.js';
import { ShownCharts } from '/charts.js';
import { count, html, Moment, Waiting } from '/elements.js';
import { Status } from '/jobs.js';
import { now } from '/server.js';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Credits of the account, the results of its jobs, and the day on which the credits end at the present rate. */
export function Overview({ session }) {
  const billing = useAnswer('/api/billing');
  const jobs = useAnswer('/api/jobs/ended');
  const history = useAnswer('/api/history');
  const title = html`<h1>${session.account.name}</h1>`;
  if (!billing.json || !jobs.json) {
    return html`${title}<${Waiting} error=${billing.error ?? jobs.error} reload=${() => Promise.all([billing.reload(), jobs.reload()])} />`;
  }
  const { usage, plan, invoice, suspended } = billing.json;
  // A cancelled job needs no explanation: a person ended it.
  const ended = jobs.json.jobs.filter(({ error_code }) => error_code !== 'cancelled');
  const last = ended.length === 1 ? 'the last job' : `the last ${count(ended.length)} jobs`;
  const none = jobs.json.jobs.length === 0 ? 'no job has ended yet' : 'the newest ones that have ended were cancelled';
  const good = ended.filter(({ status }) => status === 'CompletedJob').length;
  const failed = ended.filter(({ success }) => success === false).slice(0, 5);
  return html`${title}
    <p class="lead">${plan ? `Plan ${plan.name}` : 'No plan'}${usage.renewal_date && html`, renewed <${Moment} at=${usage.renewal_date} />`}</p>
    <${Stops} ...${{ invoice, suspended }} />
    <div class="tiles">
      <div class="card">Credits left <b>${count(usage.remaining)}</b><span class="quiet">${history.json && runsOut(usage, history.json.hours)}</span></div>
      <div class="card">Credits used in all <b>${count(usage.total_used)}</b><span class="quiet">${count(usage.held)} more held for jobs in hand</span></div>
      <div class="card">Jobs completed <b>${ended.length ? `${Math.round((100 * good) / ended.length)} %` : '–'}</b><span class="quiet">${ended.length ? `of ${last}` : none}</span></div>
    </div>
    <${ShownCharts} subjects=${['credits', 'hours']} answer=${history} left=${usage.remaining} />
    <section class="card">
      <h2>What failed lately</h2>
      ${
        failed.length === 0
          ? html`<p class="quiet">Nothing${ended.length ? ` among ${last}` : `: ${none}`}.</p>`
          : html`<ul>
            ${failed.map((job) => html`<li><a href=${`/jobs/${job.id}`}>${job.args.query}</a> <${Status} job=${job} /> ${job.error}</li>`)}
          </ul>`
      }
    </section>
    ${jobs.json.jobs.length === 0 && usage.held === 0 && html`<section class="card"><h2>Begin</h2><p>Make a <a href="/keys">key</a> for a program, or <a href="/download">download a file</a> by hand.</p></section>`}`;
}

/** Says when the credits end if the next hours use as many as the last 24. */
function runsOut({ remaining, total_used, renewal_date }, hours) {
  if (remaining === 0) return total_used === 0 ? 'none yet' : 'used up';
  const used = hours.reduce((sum, { credits }) => sum + credits, 0);
  if (used === 0) return 'none used in the last 24 hours';
  const at = now();
  // The last hour is not over.
  const left = (remaining / used) * ((hours.length - 1) * hourMs + (at % hourMs));
  if (renewal_date && at + left > Date.parse(renewal_date)) return "at today's rate enough until the plan is renewed";
  if (left > 730 * dayMs) return "at today's rate enough for more than two years";
  const style = left > 2 * dayMs ? { dateStyle: 'medium' } : { dateStyle: 'medium', timeStyle: 'short' };
  return `at today's rate until ${new Intl.DateTimeFormat(undefined, style).format(at + left)}`;
}

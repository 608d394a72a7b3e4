import { useAnswer, useRepeat } from '/answers.js';
import { Action, Form, html, Notice, useRef, useStart, useState } from '/elements.js';
import { isOpen, Progress, Status, titleOf } from '/jobs.js';

function clock(seconds) {
  if (seconds === null || seconds === undefined) return 'unknown length';
  const whole = Math.round(seconds);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return `${h ? `${h}:` : ''}${String(m).padStart(h ? 2 : 1, '0')}:${String(s).padStart(2, '0')}`;
}

/** Fetches one file by hand: paste an address, look at what it is, choose, watch, take the file. */
export function Download({ may }) {
  const [found, setFound] = useState(null);
  const [jobId, setJobId] = useState(null);
  const [hasEarlier, setEarlier] = useState(false);
  const [endpoint, setEndpoint] = useState('video');
  const [url, setUrl] = useState('');
  const field = useRef(null);
  const [askMetadata, startJob] = [useStart(), useStart()];
  if (!may.change)
    return html`<h1>Download</h1><${Notice} kind="warn">Your role reads; owners and members download.<//>`;
  const look = async () => {
    if (!field.current.reportValidity()) return;
    setFound(null);
    setFound({ query: url, ...(await askMetadata('/api/metadata', { query: url })) });
  };
  const start = async (form) => {
    const asked = { endpoint, query: url };
    for (const name of ['video_quality', 'video_format', 'audio_quality', 'audio_format']) {
      if (form.get(name)) asked[name] = form.get(name);
    }
    const [from, to] = [secondsOf(form.get('from')), secondsOf(form.get('to'))];
    // The first seconds of a live stream can be had, but no later ones.
    if (from > 0) Object.assign(asked, { start: from, ...(to !== null && { end: to }) });
    else if (to !== null) asked.max_duration = to;
    const { job_id } = await startJob('/api/jobs', asked);
    setEarlier(jobId !== null);
    setJobId(job_id);
  };
  return html`<h1>Download</h1>
    <p class="lead">The service downloads a file for you; when it is there, it costs one credit, and you save it here. Looking at it first costs one credit of its own.</p>
    <section class="card">
      <${Form} button="Download" onSend=${start} more=${html`<${Action} run=${look}>Look at it first<//>`}>
        <label>Address of a video or sound
          <input ref=${field} type="url" required value=${url} placeholder="https://…" onInput=${(event) => setUrl(event.target.value)} /></label
        >
        ${found?.query === url && html`<${Preview} found=${found.metadata} />`}
        <label>What<select value=${endpoint} onChange=${(event) => setEndpoint(event.target.value)}>
          <option value="video">Video</option><option value="audio">Sound only</option></select></label
        >
        ${
          endpoint === 'video'
            ? html`<${Choice} name="video_quality" title="Quality, at most" values=${['best', '1080p', '720p', '480p', '360p']} />
              <${Choice} name="video_format" title="Format" values=${['mp4', 'webm', 'mkv']} />`
            : html`<${Choice} name="audio_quality" title="Bit rate" values=${['best', '320kbps', '256kbps', '128kbps']} />
              <${Choice} name="audio_format" title="Format" values=${['mp3', 'm4a', 'wav']} />`
        }
        <fieldset>
          <legend>Part of it, such as 1:30; empty: all</legend>
          <${Time} name="from" title="From" />
          <${Time} name="to" title="To (needed for live)" />
        </fieldset>
      <//>
    </section>
    ${jobId && html`<${Watched} key=${jobId} id=${jobId} />`}
    ${hasEarlier && html`<p class="quiet">What you started before is in <a href="/jobs">Jobs</a>.</p>`}`;
}

/** Returns the seconds of a time such as 1:02:03; `null` for none. */
function secondsOf(time) {
  if (!time) return null;
  return time.split(':').reduce((sum, part) => 60 * sum + Number(part), 0);
}

function Time({ name, title }) {
  const form = '(\\d{1,2}:)?(\\d{1,2}:)?\\d{1,5}(\\.\\d{1,3})?';
  return html`<label>${title}<input name=${name} inputmode="decimal" pattern=${form} title="Seconds, or hours and minutes before them: 1:30" /></label>`;
}

function Choice({ name, title, values }) {
  return html`<label>${title}<select name=${name}>${values.map((value) => html`<option value=${value}>${value}</option>`)}</select></label>`;
}

/** Facts that a source tells of itself. Its picture is asked for only when the person wants it: its host then learns their address. */
function Preview({ found }) {
  const [isShown, setShown] = useState(false);
  const picture = /^https:/.test(found.thumbnail ?? '') ? new URL(found.thumbnail) : null;
  return html`<div class="preview">
    ${picture && isShown && html`<img src=${picture.href} alt="" referrerpolicy="no-referrer" />`}
    ${picture && !isShown && html`<button type="button" onClick=${() => setShown(true)}>Show its picture from ${picture.host}</button>`}
    <div><b>${found.title}</b>${found.channel && html`<br />${found.channel}`}<br /><span class="quiet">${clock(found.duration)}</span></div>
  </div>`;
}

function Watched({ id }) {
  const { json: job, reload } = useAnswer(`/api/jobs/${id}`);
  useRepeat(!job || isOpen(job), reload, 1_000);
  if (!job) return null;
  return html`<section class="card">
    <h2 aria-live="polite"><a href=${`/jobs/${id}`}>${titleOf(job, 'Your file')}</a> <${Status} job=${job} /> <span class="hint">${job.endpoint.split('/')[2]}</span></h2>
    <p><${Progress} job=${job} kind="button main" /></p>
    ${job.result?.sha256 && html`<p class="quiet mono">SHA-256 ${job.result.sha256}</p>`}
  </section>`;
}

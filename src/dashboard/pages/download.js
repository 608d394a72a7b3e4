import { bytes, Form, html, Notice, useAnswer, useEffect, useState } from '/elements.js';
import { Progress, Status } from '/jobs.js';
import { ask } from '/server.js';

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
  const [endpoint, setEndpoint] = useState('video');
  const [url, setUrl] = useState('');
  if (!may.change)
    return html`<h1>Download</h1><${Notice} kind="warn">Your role reads; owners and members download.<//>`;
  const look = async () => {
    setFound((await ask('POST', '/api/metadata', { query: url })).metadata);
  };
  const start = async (form) => {
    const asked = { endpoint, query: url };
    for (const name of ['video_quality', 'video_format', 'audio_quality', 'audio_format']) {
      if (form.get(name)) asked[name] = form.get(name);
    }
    if (form.get('max_duration')) asked.max_duration = Number(form.get('max_duration'));
    setJobId((await ask('POST', '/api/jobs', asked)).job_id);
  };
  return html`<h1>Download</h1>
    <p class="lead">A file costs one credit, when it is there. Looking at it first costs one credit too.</p>
    <section class="card">
      <label>Address of a video or sound
        <input type="url" required value=${url} placeholder="https://…" onInput=${(event) => setUrl(event.target.value)} /></label
      >
      <${Form} button="Look at it first" onSend=${look} />
      ${found && html`<${Preview} found=${found} />`}
    </section>
    <section class="card">
      <${Form} button="Download" onSend=${start}>
        <label>What<select value=${endpoint} onChange=${(event) => setEndpoint(event.target.value)}>
          <option value="video">Video</option><option value="audio">Sound only</option></select></label
        >
        ${
          endpoint === 'video'
            ? html`<${Choice} name="video_quality" title="At most" values=${['best', '1080p', '720p', '480p', '360p']} />
              <${Choice} name="video_format" title="Container" values=${['mp4', 'webm', 'mkv']} />`
            : html`<${Choice} name="audio_quality" title="Bit rate" values=${['best', '320kbps', '256kbps', '128kbps']} />
              <${Choice} name="audio_format" title="Format" values=${['mp3', 'm4a', 'wav']} />`
        }
        <label>At most this many seconds <small>Empty: all of it; a live stream needs it</small>
          <input name="max_duration" type="number" min="1" max="86400" /></label
        >
      <//>
    </section>
    ${jobId && html`<${Watched} id=${jobId} />`}`;
}

function Choice({ name, title, values }) {
  return html`<label>${title}<select name=${name}>${values.map((value) => html`<option>${value}</option>`)}</select></label>`;
}

function Preview({ found }) {
  return html`<div class="preview">
    ${/^https:/.test(found.thumbnail ?? '') && html`<img src=${found.thumbnail} alt="" referrerpolicy="no-referrer" />`}
    <div><b>${found.title}</b><br />${found.channel}<br /><span class="quiet">${clock(found.duration)}</span></div>
  </div>`;
}

function Watched({ id }) {
  const { json: job, reload } = useAnswer(`/api/jobs/${id}`);
  const isOpen = !job || job.status === 'QueuedJob' || job.status === 'Running';
  useEffect(() => {
    if (!isOpen) return;
    const timer = setInterval(reload, 1_000);
    return () => clearInterval(timer);
  }, [isOpen, reload]);
  if (!job) return null;
  return html`<section class="card" aria-live="polite">
    <h2><a href=${`/jobs/${id}`}>${job.result?.metadata?.title ?? 'Your file'}</a> <${Status} status=${job.status} /></h2>
    <p><${Progress} job=${job} /></p>
    ${job.result?.sha256 && html`<p class="quiet mono">${bytes(job.result.bytes)} · SHA-256 ${job.result.sha256}</p>`}
  </section>`;
}

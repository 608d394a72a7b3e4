const id = '0b6f2f5e-6f52-4d3a-9d6c-3a1f5f0c7e11';
const batchId = '5d0c1a52-1c3e-4b57-8f0a-7f2f3c6b9d10';
const film = 'https://example.com/film.mp4';
const response = `https://trawl.example/files/${id}/A%20film.mp4?exp=1772711419&sig=Yx0q`;

const metadata = {
  id: 'f1',
  ext: 'mp4',
  title: 'A film',
  width: 1280,
  height: 720,
  channel: 'A channel',
  channel_url: 'https://example.com/c',
  is_live: false,
  was_live: false,
  live_status: 'not_live',
  duration: 61.5,
  extractor: 'generic',
  thumbnail: 'https://example.com/t.jpg',
  like_count: 5,
  view_count: 7,
  description: 'Words',
  upload_date: 20260102,
  webpage_url: 'https://example.com/film',
  original_url: film,
};

const job = {
  id,
  status: 'CompletedJob',
  success: true,
  endpoint: '/v1/video/download',
  created_at: '2026-03-04T12:00:00.000Z',
  started_at: '2026-03-04T12:00:01.000Z',
  completed_at: '2026-03-04T12:00:19.000Z',
  duration_ms: 18000,
  progress: 100,
  args: { query: film, download_type: 'audio_video', video_quality: '720p', video_format: 'mp4', is_async: true },
  result: {
    metadata,
    response,
    expires_at: '2026-03-05T12:00:19.000Z',
    bytes: 1048576,
    sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    content_type: 'video/mp4',
  },
  error: null,
  error_code: null,
  retryable: null,
};

const pack = {
  ...{ id: 'eff636baa315', title: 'Spring', purchased_at: '2026-03-04T12:00:00.000Z' },
  ...{ total: 5, used: 0, remaining: 5, percent_used: 0, exhausted: false },
};

const usage = {
  remaining: 107,
  total_used: 0,
  held: 0,
  renewal_date: '2026-04-04T12:00:00.000Z',
  period: { start: '2026-03-04T12:00:00.000Z', end: '2026-04-04T12:00:00.000Z' },
  subscription: { used: 0, total: 7, remaining: 7, percent_used: 0 },
  packs: {
    ...{ count: 1, exhausted_count: 0, all_exhausted: false, total: 5, used: 0, remaining: 5, percent_used: 0 },
    ...{ current_index: 0, current: pack, items: [pack] },
  },
  credits: { given: 100, consumed: 0, remaining: 100, percent_used: 0 },
  rate_limit: { per_minute: 600, per_second: null },
  account: { name: 'Acme Films', slug: 'acme' },
  api_key: {
    ...{ alias: 'laptop', active: true, category: '', expires: null },
    quotas: { total: null, daily: null, weekly: null, monthly: null },
  },
};

const summary = {
  ...{ id: batchId, status: 'Completed' },
  counts: { queued: 0, running: 0, completed: 1, failed: 0 },
  credits: { held: 0, charged: 1 },
};
const batch = {
  ...summary,
  jobs: [{ query: film, job_id: id, status: 'CompletedJob', error: null, error_code: null }],
  next_cursor: null,
};

export const batchWebhookExample = summary;

/** An example of a good answer, by the operation that gives it; without its alias and `ByPost`. */
export const answerExamples: Readonly<Record<string, unknown>> = {
  readMetadata: { metadata },
  listJobs: { jobs: [job], next_cursor: null },
  getJob: job,
  deleteJob: { ...job, result: { ...job.result, response: null, expires_at: null } },
  startBatch: { batch_id: batchId },
  getBatch: batch,
  deleteBatch: batch,
  getUsage: usage,
  getUsageHistory: { days: [{ day: '2026-03-04', key: 'laptop', calls: 5, credits: 2, completed: 2, failed: 1 }] },
  getStats: {
    ...{ engine: 'video', path: null, health: 'operational', success_rate: 99.2 },
    ...{ avg_response_time_ms: 18240, window: '1h' },
  },
};

export const batchIdExample = batchId;

export const acceptedExample = { job_id: id };

export const bodyExamples: Readonly<Record<string, unknown>> = {
  downloadVideoByPost: { query: film, video_quality: '720p', webhook_url: 'https://example.com/hook' },
  downloadAudioByPost: { query: film, audio_format: 'm4a' },
  readMetadataByPost: { query: film, is_async: true },
  startBatch: { endpoint: 'video', items: [{ query: film, video_quality: '720p' }], max_credits: 1 },
  callMcp: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'download', arguments: { query: film } } },
};

export const jobIdExample = id;

export const webhookTestExample = { id, type: 'test', created_at: '2026-03-02T10:00:00.000Z' };

/** Bodies of a webhook, by the way in which its job ended. */
export const webhookExamples: Readonly<Record<string, { summary: string; value: object }>> = {
  completed: {
    summary: 'The job completed',
    value: { id, status: 'CompletedJob', result: { metadata, response } },
  },
  failed: {
    summary: 'The job ended without a file, or was cancelled',
    value: { id, status: 'Error', error: 'This content is private' },
  },
};

// Run by `helm test` in the image of the server: one job from its account to its file, and its charge.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';

const { API_URL = '', FILM = '', SECONDS = '300', TRAWL_S3_ENDPOINT = '' } = process.env;
const fail = (sentence: string): never => {
  console.error(sentence);
  process.exit(1);
};

const slug = `helm-test-${Date.now()}`;
const key = admin('account', 'open', slug, '--credits', '1').key as string;
// The account stays in the record, as its charge does; nobody has its key.
process.on('exit', () => admin('account', 'set', slug, '--suspended', 'yes'));
const before = await ask('/v1/usage');
if (before.remaining !== 1) fail(`The new account has ${before.remaining} credits instead of 1`);
console.log('The API answers, and the record keeps an account');
if (FILM === '') process.exit(0);

const { job_id: id } = await ask(`/v1/video/download?query=${encodeURIComponent(FILM)}`);
const deadline = Date.now() + Number(SECONDS) * 1000;
let job = await ask(`/v1/jobs/${id}?wait=30`);
while (job.success === null) {
  if (Date.now() > deadline) fail(`The job is not over after ${SECONDS} s: ${JSON.stringify(job)}`);
  job = await ask(`/v1/jobs/${id}?wait=30`);
}
if (!job.success) fail(`The job ended as ${JSON.stringify(job)}`);
console.log('A worker downloaded the film');

const link = new URL(job.result.response);
// The proxy in front of the API removes the path of the public URL; here no proxy does.
const path = link.pathname.slice(link.pathname.lastIndexOf('/files/'));
const first = await get(new URL(path + link.search, API_URL));
const answer = first.headers.location === undefined ? first : await follow(first.headers.location);
const sum = createHash('sha256');
let bytes = 0;
for await (const piece of answer) {
  sum.update(piece);
  bytes += piece.length;
}
if (answer.statusCode !== 200) fail(`The file was answered with ${answer.statusCode}`);
if (sum.digest('hex') !== job.result.sha256) fail('The file has another SHA-256 than its job');
console.log(`The file is there: ${bytes} bytes with the SHA-256 of its job`);

const after = await ask('/v1/usage');
if (after.remaining !== 0) fail(`The account has ${after.remaining} credits instead of 0`);
console.log('The job was charged once');
// Connections that are kept alive would hold the pod for a while.
process.exit(0);

/** The name of the store that callers use may mean nothing here; its signature holds for that name. */
function follow(location: string): Promise<IncomingMessage> {
  const url = new URL(location);
  const inside = TRAWL_S3_ENDPOINT === '' ? url : new URL(TRAWL_S3_ENDPOINT);
  return get(new URL(url.pathname + url.search, inside), { host: url.host });
}

async function get(url: URL, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  // The certificate is for the name inside.
  const name = url.hostname.replace(/^\[|\]$/g, '');
  const servername = isIP(name) ? '' : name;
  const sent = url.protocol === 'https:' ? https.request(url, { headers, servername }) : http.request(url, { headers });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return answer;
}

// biome-ignore lint/suspicious/noExplicitAny: the answers are those of docs/api.md
async function ask(path: string): Promise<any> {
  const answer = await fetch(API_URL + path, { headers: { 'x-api-key': key } });
  const text = await answer.text();
  if (!answer.ok) fail(`${path.split('?')[0]} was answered with ${answer.status}: ${text}`);
  return JSON.parse(text);
}

function admin(...words: string[]): Record<string, unknown> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !['API_URL', 'FILM'].includes(name)));
  const line = ['/opt/trawl/src/main.ts', 'admin', ...words, '--json'];
  return JSON.parse(execFileSync('node', line, { env, encoding: 'utf8' }));
}

import { hash, randomUUID } from 'node:crypto';
import { isLoopback } from '../base/config.ts';
import { codeOf, innermost, messageOf } from '../base/errors.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { BucketSettings } from '../objects/s3-bucket.ts';
import { openS3 } from '../objects/s3-store.ts';
import { type Finding, judged, note, problem } from './doctor-finding.ts';

const content = 'trawl doctor wrote this and removes it again';
const shown = { content_type: 'video/mp4', disposition: 'attachment' };
const sha256 = hash('sha256', content);
const upload = { bytes: content.length, sha256, content_type: shown.content_type, parts: [sha256] };
const timeoutMs = 10_000;

/**
 * Checks the bucket with a small file: writes it, reads it through a signed URL as a caller does, and removes it. In a pod, a public
 * endpoint on the loopback of callers' machines is left out: a port-forward serves it there, and nothing does in the pod. Another one
 * that is silent may be closed by network policies, which say nothing of callers.
 */
export async function checkBucket(
  given: BucketSettings,
  { isInCluster = false, hasPolicies = false } = {},
): Promise<Finding> {
  const { s3PublicEndpoint } = given;
  const isForwarded = isInCluster && s3PublicEndpoint !== null && isLoopback(new URL(s3PublicEndpoint).hostname);
  const settings = isForwarded ? { ...given, s3PublicEndpoint: null } : given;
  const store = openS3({ settings, partBytes: content.length, throughEgress: async () => false });
  const prefix = `doctor/${randomUUID()}/`;
  const about = 'bucket';
  let isUnheard = false;
  const readInside = async (error: unknown) => {
    if (!hasPolicies || !isSilence(error)) throw error;
    const inside = { ...given, s3PublicEndpoint: null };
    await read(openS3({ settings: inside, partBytes: 0, throughEgress: async () => false }), `${prefix}trial`);
    isUnheard = true;
  };
  const steps = [
    ['written', () => write(store, `${prefix}trial`)],
    ['kept as it is', () => keep(store, `${prefix}kept`)],
    ['read', () => read(store, `${prefix}trial`).catch(readInside)],
    ['cleared', () => clear(store, prefix)],
  ] as const;
  for (const [verb, step] of steps) {
    const fault = await step().then(
      () => null,
      (error: unknown) => messageOf(innermost(error)),
    );
    if (fault === null) continue;
    // The fault is reported below; a file that stays behind is small.
    await store.remove(prefix).catch(() => {});
    return problem(
      about,
      `The bucket ${settings.s3Bucket} cannot be ${verb}: ${fault}. docs/s3.md says what it needs.`,
    );
  }
  const well = `The bucket ${settings.s3Bucket} can be written, read and cleared.`;
  const unheard = `${well} This pod hears nothing from ${s3PublicEndpoint}, where callers get files: networkPolicy.s3 may leave it out.`;
  if (isUnheard) return note(about, unheard);
  const forwarded = `${well} Links begin with ${s3PublicEndpoint}: only a machine with a port-forward there gets files.`;
  return judged(about, !isForwarded, well, forwarded, 'note');
}

async function write(store: ObjectStore, key: string): Promise<void> {
  const permit = await store.permit(key, upload);
  for (const { url, headers } of permit.is === 'parts' ? permit.parts : []) {
    await ask(url, { method: 'PUT', headers, body: content });
  }
  await store.finish(key);
  const seen = await store.see(key);
  if (seen?.checksum !== sha256) throw new Error('it does not verify SHA-256 checksums of parts');
}

async function keep(store: ObjectStore, key: string): Promise<void> {
  for (const text of [content, 'something else']) await store.keep(key, Buffer.from(text));
  const kept = await store.read(key);
  if (kept?.toString() !== content) throw new Error('it overwrites what is there although If-None-Match forbids that');
}

async function read(store: ObjectStore, key: string): Promise<void> {
  const opened = await store.open(key, shown);
  if (opened?.is !== 'redirect') throw new Error('what was written is not there');
  const answer = await ask(opened.url, {});
  if ((await answer.text()) !== content) throw new Error('a link gives something else than was written');
}

/** Removes what was written, and an upload that nobody finishes, as a worker that is killed leaves one. */
async function clear(store: ObjectStore, prefix: string): Promise<void> {
  await store.permit(`${prefix}begun`, upload);
  await store.remove(prefix);
  if ((await store.see(`${prefix}trial`)) !== null) throw new Error('what was removed is still there');
}

async function ask(url: string, request: RequestInit): Promise<Response> {
  const answer = await fetch(url, { ...request, signal: AbortSignal.timeout(timeoutMs) });
  if (!answer.ok) throw new Error(`${new URL(url).host} answered ${answer.status} to a signed URL`);
  return answer;
}

/** Returns true when nothing answered, as behind a network policy that drops packets. */
function isSilence(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === 'TimeoutError' || ['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'].includes(codeOf(error.cause));
}

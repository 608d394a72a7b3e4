import { createHash } from 'node:crypto';
import { aFilm, type TestApi } from './api.ts';
import { endJob, runJob } from './job-steps.ts';
import { completed } from './record.ts';

/** Ends a job with a file that is really there, of these bytes. */
export async function deliverBytes({ store, objects }: TestApi, id: string, bytes: Buffer): Promise<Buffer> {
  const { attempt } = await runJob(store, id);
  const key = `${id}/${attempt}/media.mp4`;
  await objects.receive(
    await objects.permit(key, { bytes: bytes.length }),
    (async function* () {
      yield bytes;
    })(),
  );
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const delivered = { key, bytes: bytes.length, sha256, content_type: 'video/mp4' };
  await endJob(store, id, { ...completed, metadata: aFilm, delivered });
  return bytes;
}

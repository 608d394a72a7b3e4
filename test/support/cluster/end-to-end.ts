import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { aFolder } from '../redis.ts';
import type { Installation } from './installation.ts';
import { kubectl } from './kubectl.ts';
import { type JobTraces, readJobTraces } from './submitted-job.ts';

/** Traces of a job that completes at its first attempt. */
export const completed: JobTraces = {
  ...{ status: 'CompletedJob', code: null, failures: 0, interruptions: 0, attempts: ['completed'], problems: [] },
  ...{ charged: 1, held: 0, lines: [201, 202], webhooks: ['CompletedJob'], objects: ['1/media.mp4'] },
};

/** Traces of a job whose only attempt failed. */
export const failed = (code: string): JobTraces => ({
  ...completed,
  ...{ status: 'Error', code, attempts: [code], charged: 0, lines: [202, 500], webhooks: ['Error'], objects: [] },
});

/** Runs one job from its HTTP call to its file, and checks every trace of it. */
export async function runJobEndToEnd(trawl: Installation): Promise<void> {
  const order = await trawl.submit('/films/clip.mp4');
  expect(await readJobTraces(trawl, order, 120)).to.deep.equal(completed);
  const { json: job } = await trawl.ask(order, `/v1/jobs/${order.id}`);
  expect(job).to.include({ status: 'CompletedJob', progress: 100, error: null });
  const link = new URL(job.result.response);
  const { status, headers } = await trawl.ask(order, link.pathname + link.search);
  expect(status).to.equal(307);
  const film = Buffer.from(await (await fetch(headers.get('location') ?? '')).arrayBuffer());
  expect([film.length, hash('sha256', film)]).to.deep.equal([job.result.bytes, job.result.sha256]);
  expect(probe(film)).to.deep.equal(['h264 640x360', 'aac']);
  expect(trawl.receiver.of(order.id)[0]?.headers.authorization).to.match(/^Bearer CanaryAuthorization/);
  expect((await trawl.ask(order, '/v1/usage')).json).to.include({ remaining: 9, held: 0 });
  const words = ['get', 'all', '--namespace', trawl.namespace, '--output', 'name'];
  expect(await kubectl(trawl, words), 'what kubectl shows').to.equal('');
}

/** Checks that the cluster never stored a secret of the installation or of its callers. */
export function expectNoSecrets(trawl: Installation, stored: string): void {
  expect(stored).to.contain('trawl/unsettled');
  expect([...trawl.secrets].filter((word) => stored.includes(word))).to.deep.equal([]);
}

/** The streams of a film. */
function probe(film: Buffer): string[] {
  const { folder, remove } = aFolder();
  const file = join(folder, 'film');
  writeFileSync(file, film);
  const words = ['-v', 'error', '-show_entries', 'stream=codec_name,width,height', '-of', 'json', file];
  const { streams } = JSON.parse(execFileSync('ffprobe', words, { encoding: 'utf8' }));
  remove();
  return streams.map(({ codec_name, width, height }: { codec_name: string; width?: number; height?: number }) =>
    width === undefined ? codec_name : `${codec_name} ${width}x${height}`,
  );
}

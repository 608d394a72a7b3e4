import { createReadStream, readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { makeFilms } from '../support/films.ts';
import { makeService, type Service } from '../support/service.ts';
import { readAttempts } from '../support/stored-job.ts';
import { until } from '../support/until.ts';

const waitSeconds = 3;

/** Manifest of a live film that is two seconds long at first and one second longer each five seconds. */
const manifest = (
  ageMs: number,
) => `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z"
 minimumUpdatePeriod="PT1S" profiles="urn:mpeg:dash:profile:isoff-live:2011"><Period id="0" start="PT10S">
 <AdaptationSet contentType="video" mimeType="video/mp4">
 <Representation id="0" codecs="avc1.42c01e" bandwidth="286962" width="640" height="360">
 <SegmentTemplate timescale="12800" startNumber="1" initialization="init-stream0.m4s" media="chunk-stream0-$Number%05d$.m4s">
 <SegmentTimeline><S t="0" d="12800" r="${1 + Math.floor(ageMs / 5000)}"/></SegmentTimeline></SegmentTemplate></Representation></AdaptationSet></Period></MPD>`;

describe('an account whose sources drip', () => {
  const service: Service = makeService({ TRAWL_WORKERS: '2', TRAWL_PREEMPT_SECONDS: String(waitSeconds) });
  let source: Server;
  let isDripping = true;
  before(async () => {
    const film = join(makeFilms(), 'clip.mp4');
    const { size } = statSync(film);
    const began = performance.now();
    source = createServer((asking, answer) => {
      if (asking.url?.startsWith('/live/')) {
        const name = asking.url.split('/').at(-1) ?? '';
        const list = manifest(performance.now() - began);
        if (name === 'list.mpd') return answer.setHeader('content-type', 'application/dash+xml').end(list);
        const piece = name.replace(/\d{5}/, (number) => String(1 + (Number(number) % 4)).padStart(5, '0'));
        return answer.setHeader('content-type', 'video/mp4').end(readFileSync(join(makeFilms(), 'dash', piece)));
      }
      const drips = asking.url?.startsWith('/drip') === true && isDripping;
      answer.writeHead(200, { 'content-type': 'video/mp4', 'content-length': drips ? 40_000_000 : size });
      if (asking.method === 'HEAD') return answer.end();
      if (!drips) return createReadStream(film).pipe(answer);
      // Fast enough that it never counts as too slow, and too slow to come to an end.
      const timer = setInterval(() => answer.write(Buffer.alloc(8_192)), 250);
      return answer.once('close', () => clearInterval(timer));
    });
    await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve));
    await service.start();
  });
  after(async () => {
    await service.close();
    source?.closeAllConnections();
    source?.close();
  });

  const submit = (key: string, path: string) =>
    service.submit(key, `/v1/video/download?query=http://127.0.0.1:${(source.address() as AddressInfo).port}${path}`);
  const job = (id: string) => service.withStore((store) => readJob(store, id));
  const attempts = (id: string) => service.withStore((store) => readAttempts(store, id));

  it('D74: gives a worker to another account after its wait; the interrupted job ends well later and is charged once', async () => {
    const [hostile, other] = await Promise.all([service.aCustomer(), service.aCustomer()]);
    const drips: string[] = [];
    for (const path of ['/drip/1.mp4', '/drip/2.mp4']) {
      drips.push(await submit(hostile.key, path));
      await until(async () => (await job(drips.at(-1) ?? ''))?.status === 'Running', 30, 'it has a worker');
    }
    const film = await submit(other.key, '/film.mp4');
    const [ended] = await service.ended([film], 60);
    expect(ended?.status).to.equal('CompletedJob');
    const [first = '', second = ''] = drips;
    expect((await job(first))?.interruptions, 'the older job').to.equal(0);
    expect(await job(second), 'the younger job').to.include({ interruptions: 1, failures: 0 });
    expect((await attempts(second))[1]).to.include({
      counts: 'interruption',
      reason: 'another account waited for a worker',
    });
    const next = await submit(other.key, '/film.mp4?again');
    expect((await service.ended([next], 60))[0]?.status, 'the next job of the other account').to.equal('CompletedJob');
    expect(isEnded((await job(first))?.status ?? 'Error'), 'the older job still drips').to.equal(false);

    isDripping = false;
    source.closeAllConnections();
    const jobs = await service.ended(drips, 120);
    expect(jobs.map(({ status }) => status)).to.deep.equal(['CompletedJob', 'CompletedJob']);
    await service.checkLedger(hostile.account, jobs);
    await service.checkLedger(other.account, await service.ended([film, next], 1));
  });

  it('records on one of two workers only, in turn, and leaves the other one to another account', async () => {
    const [hostile, other] = await Promise.all([service.aCustomer(), service.aCustomer()]);
    const record = (n: number) => submit(hostile.key, `/live/${n}/list.mpd&max_duration=3600`);
    const first = await record(1);
    await until(async () => (await job(first))?.stage === 'record', 30, 'it records');
    const second = await record(2);
    await until(async () => (await job(second))?.interruptions === 1, 30, 'the second recording is interrupted');
    expect((await attempts(second))[1]?.reason).to.equal('its account would record on every worker');
    const film = await submit(other.key, '/film.mp4?live');
    expect((await service.ended([film], 60))[0]?.status).to.equal('CompletedJob');
    expect(await job(first), 'the first recording').to.include({ stage: 'record', interruptions: 0 });
    expect(await job(second), 'the second recording').to.include({ status: 'Running', stage: null });

    const cancel = (id: string) =>
      fetch(`${service.up().url}/v1/jobs/${id}`, { method: 'DELETE', headers: { 'x-api-key': hostile.key } });
    expect((await cancel(first)).status).to.equal(200);
    await until(async () => (await job(second))?.stage === 'record', 30, 'the second one records after the first');
    await cancel(second);
    await service.checkLedger(hostile.account, await service.ended([first, second], 30));
  });
});

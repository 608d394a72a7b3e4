import { expect } from 'chai';
import { boards } from '../../dashboards/boards.ts';
import { alerts } from '../support/alerts.ts';
import { freePort } from '../support/free-port.ts';
import { makeService } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';
import { askFor, findEmpty } from '../support/watch/panel-queries.ts';
import { type Prometheus, startPrometheus } from '../support/watch/prometheus.ts';

describe('the queries before a real Prometheus that reads a running trawl', () => {
  const service = makeService();
  let source: Source;
  let prometheus: Prometheus;

  before(async () => {
    source = await startSource();
    const probe = await freePort();
    await service.start({ TRAWL_PROBE_PORT: String(probe) });
    prometheus = await startPrometheus();
    const ask = (query: string) => prometheus.ask(query);
    prometheus.setTargets([`127.0.0.1:${probe}`]);
    const { key } = await service.aCustomer();
    const film = encodeURIComponent(`${source.url}/films/clip.mp4`);
    const nothing = encodeURIComponent(`${source.url}/status/404`);
    const jobs = [
      await service.submit(key, `/v1/video/download?query=${film}`),
      await service.submit(key, `/v1/video/download?query=${nothing}`),
    ];
    await service.ended(jobs, 30);
    const seen = async () => (await ask('sum(trawl_jobs_total)').catch(() => []))[0]?.value[1] === '2';
    await until(seen, 30, 'Prometheus has read the end of both jobs');
    // A rate needs two readings after that.
    const read = async () => Number((await ask('min(count_over_time(trawl_jobs_total[1m]))'))[0]?.value[1]);
    await until(async () => (await read()) >= 3, 20, 'Prometheus has read it again');
  });
  after(async () => {
    await prometheus?.stop();
    await service.close();
    await source?.stop();
  });

  for (const { name, rows } of boards) {
    it(`return data for each panel of ${name}, but for those that say why they may have none`, async () => {
      expect(await findEmpty(prometheus, rows)).to.deep.equal([]);
    });
  }

  it('fire no alert', async () => {
    // The release of yt-dlp in use grows old by itself.
    const judged = alerts.filter(({ alert }) => alert !== 'TrawlYtDlpOld');
    const firing = await Promise.all(
      judged.map(async ({ alert, expr }) => [alert, await askFor(prometheus, expr)] as const),
    );
    expect(firing.filter(([, found]) => found.length > 0).map(([alert]) => alert)).to.deep.equal([]);
  });
});

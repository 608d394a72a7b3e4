import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { failures } from '../../src/base/errors.ts';
import { type Answers, startDns, type TestDns } from '../support/dns.ts';
import { plugins } from '../support/media.ts';
import { makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

const known: Answers = (name) => (name === 'film.example' ? ['127.0.0.1'] : []);

describe('trawl up without a way to the Internet', () => {
  let dns: TestDns;
  let source: Source;
  let service: Service;
  let film: string;
  const socket = (name: string) => join(service.data, name);

  before(async () => {
    dns = await startDns();
    source = await startSource();
    film = `http://film.example:${URL.parse(source.url)?.port}/films/clip.mp4`;
    service = makeService({ TRAWL_DNS_SERVERS: `127.0.0.1:${dns.port}`, TRAWL_YTDLP_PLUGINS: plugins });
    await service.start();
    for (const name of ['egress.sock', 'inspector.sock']) await until(() => existsSync(socket(name)), 60, name);
  });
  beforeEach(() => {
    dns.answers = known;
  });
  after(async () => {
    await service.stop();
    await service.close();
    await source.stop();
    dns.close();
  });

  const answer = (answers: Answers) => () => {
    dns.answers = answers;
  };
  const faults: readonly [title: string, begin: () => void, end: () => void][] = [
    [
      'egress is away',
      () => renameSync(socket('egress.sock'), socket('away')),
      () => renameSync(socket('away'), socket('egress.sock')),
    ],
    ['the resolvers of egress fail', answer(() => 'failed'), answer(known)],
  ];
  for (const [title, begin, end] of faults) {
    it(`D74: a metadata call answers 503 and jobs wait, as no failure of the source, while ${title}`, async () => {
      const { account, key } = await service.aCustomer();
      const drivers = () => service.processes(/utf8[ \0][^ \0]*driver\.py[ \0]?$/).length;
      begin();
      const ids = [
        await service.submit(key, `/v1/video/download?query=${film}`),
        await service.submit(key, `/v1/media/metadata?is_async=true&query=${film}`),
      ];
      const call = await service.ask(key, `/v1/media/metadata?query=${film}`);
      expect([call.status, call.headers.get('x-error-code')]).to.deep.equal([503, 'unavailable']);
      await until(() => drivers() > 0, 120, 'the worker has tried');
      await until(() => drivers() === 0, 120, 'the worker waits');
      end();
      const jobs = await service.ended(ids, 120);
      expect(jobs.map(({ status, failures }) => [status, failures])).to.deep.equal([
        ['CompletedJob', 0],
        ['CompletedJob', 0],
      ]);
      await service.checkLedger(account, jobs);
    });
  }

  it('D74: a source whose own name servers fail, or whose name does not exist, is at fault itself', async () => {
    const { key } = await service.aCustomer();
    dns.answers = (name) => (name === 'film.example' ? 'failed' : []);
    for (const query of [film, 'http://no-such-name.example/film.mp4']) {
      const call = await service.ask(key, `/v1/media/metadata?query=${query}`);
      expect([call.status, call.json.error]).to.deep.equal([500, failures.source_broken.sentence]);
    }
    const [job] = await service.ended([await service.submit(key, `/v1/video/download?query=${film}`)], 120);
    expect(job).to.include({ status: 'Error', failures: 2 });
  });
});

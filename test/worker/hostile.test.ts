import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { startGateway } from '../support/gateway.ts';
import { startProxy, type TestProxy } from '../support/proxy.ts';
import { aFolder } from '../support/redis.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { processesOf, startWorker } from '../support/worker.ts';

describe('A worker with a source that never ends', function () {
  this.timeout(90_000);
  let source: Source;
  let proxy: TestProxy;

  before(async function () {
    this.timeout(180_000);
    source = await startSource();
    proxy = await startProxy((host) => host === source.host);
  });
  after(async () => {
    await proxy.stop();
    await source.stop();
  });

  const rows: readonly { title: string; path: string; codes: readonly string[] }[] = [
    { title: 'a body without end', path: '/endless', codes: ['file_too_large'] },
    { title: 'a body that stands still', path: '/hang', codes: ['timeout', 'too_slow', 'source_broken'] },
    {
      title: 'a compressed page without end',
      path: '/bomb',
      codes: ['file_damaged', 'extractor_failed', 'file_too_large'],
    },
  ];
  for (const sandbox of ['required', 'off'] as const) {
    for (const { title, path, codes } of rows) {
      it(`ends ${title}, and leaves nothing (sandbox ${sandbox})`, async () => {
        const { folder, remove } = aFolder();
        const args = {
          query: source.url + path,
          download_type: 'audio_video',
          video_quality: 'best',
          video_format: 'mp4',
        };
        const limits = { file_bytes: 20_000_000, seconds: 20 };
        const gateway = await startGateway({ folder, order: { endpoint: 'video', args }, limits });
        const begin = performance.now();
        const worker = startWorker({ folder, gateway: gateway.address, egress: proxy.url, sandbox, media: 'real' });
        const { code } = await worker.exit;
        expect(code, worker.stderr()).to.be.oneOf([64, 75]);
        expect(gateway.verdicts.map((verdict) => verdict.code)[0], worker.stderr()).to.be.oneOf([...codes]);
        expect(performance.now() - begin).to.be.below(60_000);
        const work = join(folder, 'work');
        expect(existsSync(work) ? readdirSync(work) : []).to.deep.equal([]);
        expect(processesOf(work)).to.deep.equal([]);
        await gateway.stop();
        remove();
      });
    }
  }
});

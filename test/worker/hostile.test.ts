import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { folderBytes } from '../../src/worker/file-usage.ts';
import { startGateway } from '../support/gateway.ts';
import { startProxy, type TestProxy } from '../support/proxy.ts';
import { aFolder } from '../support/redis.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { processesOf, startWorker } from '../support/worker.ts';

interface Row {
  readonly title: string;
  readonly path: string;
  readonly codes: readonly string[];
  readonly slowSeconds?: number;
}

const fileBytes = 20_000_000;
const rows: readonly Row[] = [
  { title: 'a body without end', path: '/endless', codes: ['file_too_large'] },
  { title: 'a body of one byte a second', path: '/rate/1/clip.mp4', codes: ['too_slow'], slowSeconds: 3 },
  { title: 'a body that stands still', path: '/hang', codes: ['too_slow', 'source_broken'], slowSeconds: 3 },
  { title: 'a compressed page without end', path: '/bomb', codes: ['file_too_large'] },
];

describe('A worker with a source that never ends', () => {
  let source: Source;
  let proxy: TestProxy;

  before(async () => {
    source = await startSource();
    proxy = await startProxy((host) => host === source.host);
  });
  after(async () => {
    await proxy.stop();
    await source.stop();
  });

  for (const sandbox of ['required', 'off'] as const) {
    for (const { title, path, codes, slowSeconds } of rows) {
      it(`ends ${title} and leaves no process and no file (sandbox ${sandbox})`, async () => {
        const { folder, remove } = aFolder();
        const work = join(folder, 'work');
        const query = source.url + path;
        const args = { query, download_type: 'audio_video', video_quality: 'best', video_format: 'mp4' };
        const limits = { file_bytes: fileBytes, seconds: 40 };
        const gateway = await startGateway({ folder, order: { endpoint: 'video', args }, limits });
        let most = 0;
        const look = setInterval(() => {
          most = Math.max(most, folderBytes(work));
        }, 50);
        try {
          const worker = startWorker({
            ...{ folder, gateway: gateway.address, egress: proxy.url, sandbox, media: 'real' },
            ...(slowSeconds && { slowSeconds }),
          });
          const { code } = await worker.exit;
          expect(code, worker.stderr()).to.be.oneOf([64, 75]);
          expect(gateway.verdicts.map((verdict) => verdict.code)[0], worker.stderr()).to.be.oneOf([...codes]);
          // One piece of yt-dlp's, and what a file system counts besides.
          expect(most).to.be.below(fileBytes + 2 ** 25);
          expect(existsSync(work) ? readdirSync(work) : []).to.deep.equal([]);
          expect(processesOf(work)).to.deep.equal([]);
        } finally {
          clearInterval(look);
          await gateway.stop();
          remove();
        }
      });
    }
  }
});

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { produce } from '../../src/media/produce-file.ts';
import { makeFilms } from '../support/films.ts';
import { aTools, look } from '../support/media.ts';
import { startProxy } from '../support/proxy.ts';
import { aFolder } from '../support/redis.ts';

const master =
  '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="a.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS="avc1.42c01e,mp4a.40.2",RESOLUTION=640x360,AUDIO="a"\nv.m3u8\n';

describe('A live HLS stream with sound of its own', function () {
  this.timeout(120_000);

  it('D65: is recorded with picture and sound of the same time', async () => {
    const asked: string[] = [];
    const { promise: soundIsRead, resolve: readSound } = Promise.withResolvers<void>();
    let newest = 3;
    // The stream moves on by a piece of two seconds at each reading of the picture's list, never by the clock.
    const listOf = (kind: string) => {
      if (kind === 'v') newest += 1;
      else readSound();
      const pieces = [newest - 2, newest - 1, newest].map((n) => `#EXTINF:2,\n${kind}${n}.ts\n`);
      return `#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:${newest - 2}\n${pieces.join('')}`;
    };
    const source = createServer(async (request, response) => {
      const name = (request.url ?? '').slice(1);
      const [, kind = '', number] = /^([av])(\d*)\.(?:ts|m3u8)$/.exec(name) ?? [];
      if (!number) {
        const text = kind === '' ? master : listOf(kind);
        return void response.setHeader('content-type', 'application/vnd.apple.mpegurl').end(text);
      }
      asked.push(name);
      // The end of this wait is for a recording that never reads the sound meanwhile.
      const gaveUp = new Promise((resolve) => setTimeout(resolve, 20_000).unref());
      if (kind === 'v') await Promise.race([soundIsRead, gaveUp]);
      response.setHeader('content-type', 'video/mp2t').end(readFileSync(join(makeFilms(), 'fast', `${number}.ts`)));
    });
    await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(source.address() as AddressInfo).port}`;
    const proxy = await startProxy((each) => each === host);
    const { folder, remove } = aFolder();
    const args = {
      query: `http://${host}/master.m3u8`,
      download_type: 'audio_video',
      video_format: 'mp4',
      max_duration: 4,
    };
    const { signal } = new AbortController();
    const { file } = await produce({ endpoint: 'video', args }, aTools(folder, proxy.url), () => {}, signal);
    expect(look(file).duration).to.be.closeTo(4, 0.2);
    const numbers = (kind: string) => asked.filter((name) => name[0] === kind).map((name) => name.slice(1));
    expect(numbers('a')).to.deep.equal(numbers('v'));
    await proxy.stop();
    source.closeAllConnections();
    source.close();
    remove();
  });
});

import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { Failed } from '../../src/media/tools.ts';
import { makeFilms } from '../support/films.ts';
import { recordLive } from '../support/media.ts';

const master =
  '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="a.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS="avc1.42c01e,mp4a.40.2",RESOLUTION=640x360,AUDIO="a"\nv.m3u8\n';

describe('A live HLS stream', function () {
  this.timeout(120_000);

  it('D65: is recorded with picture and sound of the same time', async () => {
    const { promise: soundIsRead, resolve: readSound } = Promise.withResolvers<void>();
    let newest = 3;
    // The stream moves on by a piece of two seconds at each reading of the picture's list, never by the clock.
    const listOf = (kind: string) => {
      if (kind === 'v') newest += 1;
      else readSound();
      return aList(newest, kind);
    };
    const pieceOf = async (kind: string, number: string) => {
      // The end of this wait is for a recording that never reads the sound meanwhile.
      const gaveUp = new Promise((resolve) => setTimeout(resolve, 20_000).unref());
      if (kind === 'v') await Promise.race([soundIsRead, gaveUp]);
      return filmed(number);
    };
    const { seconds, asked } = await record(listOf, pieceOf, 4);
    expect(seconds).to.be.closeTo(4, 0.2);
    const numbers = (kind: string) => asked.filter((name) => name[0] === kind).map((name) => name.slice(1));
    expect(numbers('a')).to.deep.equal(numbers('v'));
  });

  it('D65: which ends before max_duration is delivered from the beginning of the recording to its end', async () => {
    const readings = { v: 3, a: 3 };
    const listOf = (kind: 'v' | 'a') => {
      readings[kind] += 1;
      const end = readings[kind] >= 9 ? '#EXT-X-ENDLIST\n' : '';
      return aList(Math.min(readings[kind], 9), kind) + end;
    };
    const { seconds, asked } = await record(listOf, (_, number) => filmed(number), 60);
    const pieces = new Set(asked.filter((name) => name[0] === 'v'));
    expect(pieces.size).to.be.at.least(4);
    expect(
      asked.filter((name) => name[0] === 'v'),
      'recorded once',
    ).to.have.length(pieces.size);
    expect(seconds).to.be.closeTo(2 * pieces.size, 0.3);
  });

  it('D65: which has ended when its recording begins is delivered from the beginning of its list', async () => {
    let readings = 0;
    // The extractor reads one list before.
    const listOf = (kind: string) => aList(6, kind) + (++readings > 1 ? '#EXT-X-ENDLIST\n' : '');
    const { seconds } = await record(listOf, (_, number) => filmed(number), 60);
    expect(seconds).to.be.closeTo(6, 0.3);
  });

  it('D91 D92: whose pieces are missing for more than 2 s and 5 % is refused as incomplete, and not recorded again', async () => {
    const readings = { v: 3, a: 3 };
    const listOf = (kind: 'v' | 'a') => aList(++readings[kind], kind);
    const pieceOf = (_: string, number: string) => (['8', '9'].includes(number) ? null : filmed(number));
    const refused = await record(listOf, pieceOf, 16).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Failed).and.have.property('code', 'source_incomplete');
    expect(readings.v).to.be.below(16);
  });
});

/** Returns a playlist of three pieces of two seconds, the last of which has that number. */
function aList(newest: number, kind: string): string {
  const pieces = [newest - 2, newest - 1, newest].map((n) => `#EXTINF:2,\n${kind}${n}.ts\n`);
  return `#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:${newest - 2}\n${pieces.join('')}`;
}

function filmed(number: string): Buffer {
  return readFileSync(join(makeFilms(), 'fast', `${number}.ts`));
}

/** Records so many seconds of a stream with sound of its own; returns the length of the file and the pieces that were asked for. */
async function record(
  listOf: (kind: 'v' | 'a') => string,
  pieceOf: (kind: string, number: string) => Buffer | null | Promise<Buffer>,
  maxSeconds: number,
): Promise<{ seconds: number; asked: readonly string[] }> {
  const asked: string[] = [];
  const serve: RequestListener = async (request, response) => {
    const name = (request.url ?? '').slice(1);
    const [, kind, number] = /^([av])(\d*)\.(?:ts|m3u8)$/.exec(name) ?? [];
    if (!number) {
      const text = kind === 'v' || kind === 'a' ? listOf(kind) : master;
      return void response.setHeader('content-type', 'application/vnd.apple.mpegurl').end(text);
    }
    asked.push(name);
    const piece = await pieceOf(kind ?? '', number);
    if (piece === null) return void response.writeHead(404).end();
    response.setHeader('content-type', 'video/mp2t').end(piece);
  };
  const film = { download_type: 'audio_video', video_format: 'mp4', max_duration: maxSeconds };
  const { seconds } = await recordLive(serve, '/master.m3u8', film);
  return { seconds: seconds ?? 0, asked };
}

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { planConversion } from '../../src/media/plan-conversion.ts';
import type { FetchedFile } from '../../src/media/probe-file.ts';
import { readProbe } from '../../src/media/probe-file.ts';
import { Failed } from '../../src/media/tools.ts';
import { testsAtOnce } from '../support/at-once.ts';
import { makeFilms } from '../support/films.ts';
import { recordLive } from '../support/media.ts';
import { aFolder } from '../support/redis.ts';

const master =
  '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="a.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS="avc1.42c01e,mp4a.40.2",RESOLUTION=640x360,AUDIO="a"\nv.m3u8\n';

const names = { v: 'picture', a: 'sound' };

describe('A live HLS stream', () => {
  const it = testsAtOnce(4);

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
    expect(numbersOf('a', asked)).to.deep.equal(numbersOf('v', asked));
  });

  for (const [late, other] of [
    ['v', 'a'],
    ['a', 'v'],
  ] as const) {
    it(`D65: whose list of ${names[late]} has one piece more when both are read first begins with the same piece of both`, async () => {
      const { promise: otherIsRead, resolve: readOther } = Promise.withResolvers<void>();
      // The extractor reads the list of the picture, and each recording its own, before.
      const readings = { v: -2, a: -1 };
      let newest = 3;
      const listOf = async (kind: 'v' | 'a') => {
        readings[kind] += 1;
        if (kind === other && readings[kind] === 1) setImmediate(readOther);
        if (kind === late && readings[kind] === 1) await otherIsRead;
        if (readings[kind] > 0 && (kind === 'v' || readings[kind] === 1)) newest += 1;
        return aList(newest, kind);
      };
      const { seconds, asked, delay } = await record(listOf, (_, number) => filmed(number), 4);
      expect(numbersOf('a', asked)).to.deep.equal(numbersOf('v', asked));
      expect(seconds).to.be.closeTo(4, 0.2);
      expect(delay()).to.be.closeTo(0, 0.05);
    });

    it(`D65: whose ${names[late]} begins two seconds later, under numbers of its own, has both of the same time`, async () => {
      // The extractor reads the list of the picture, and each recording its own, before; in the recording each moves on by a piece when it is read.
      const readings = { v: -2, a: -1 };
      const listOf = (kind: 'v' | 'a') => {
        readings[kind] += 1;
        const newest = 4 + Math.max(0, readings[kind]);
        return kind === late ? aList(newest + 1, kind, 1000) : aList(newest, kind);
      };
      const { seconds, delay } = await record(listOf, (_, number) => filmed(number), 4);
      expect(seconds).to.be.closeTo(4, 0.3);
      expect(delay()).to.be.closeTo(0, 0.05);
    });
  }

  it('D65: whose lists count one apart begins with the same piece of both where the lists tell their dates', async () => {
    let newest = 3;
    const listOf = (kind: 'v' | 'a') => {
      if (kind === 'v') newest += 1;
      const date = new Date(Date.UTC(2026, 0, 1, 0, 0, 2 * (newest - 2), kind === 'v' ? 250 : 0)).toISOString();
      const dated = `#EXT-X-PROGRAM-DATE-TIME:${kind === 'v' ? date : date.replace('Z', '+00:00')}\n#EXTINF`;
      return aList(newest, kind, kind === 'v' ? 1 : 0).replace('#EXTINF', dated);
    };
    const { seconds, asked } = await record(listOf, (_, number) => filmed(number), 4);
    expect(numbersOf('a', asked)).to.deep.equal(numbersOf('v', asked));
    expect(seconds).to.be.closeTo(4, 0.2);
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

  for (const [title, answer] of [
    ['are missing', null],
    ['come as a page', Buffer.from('<html>Too many requests</html>')],
  ] as const) {
    it(`D91 D92: whose pieces ${title} for more than 2 s and 5 % is refused as incomplete, and not recorded again`, async () => {
      const readings = { v: 3, a: 3 };
      const listOf = (kind: 'v' | 'a') => aList(++readings[kind], kind);
      const pieceOf = (_: string, number: string) => (['8', '9'].includes(number) ? answer : filmed(number));
      const refused = await record(listOf, pieceOf, 16).catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(Failed).and.have.property('code', 'source_incomplete');
      expect(readings.v).to.be.below(16);
    });
  }
});

describe('Picture and sound', () => {
  for (const [begins, formats, fragmented, starts] of [
    [[10, 12], ['mpegts', 'mpegts'], true, [3, 1]],
    [[12, 8], ['mpegts', 'mpegts'], true, [3, 7]],
    [[10, 10.04], ['mpegts', 'mpegts'], true, [3, 3]],
    [[10, 71], ['mpegts', 'mpegts'], true, [3, 3]],
    [[10, 0], ['mpegts', 'aac'], true, [3, 3]],
    [[10, null], ['mpegts', 'mpegts'], true, [3, 3]],
    [[10, 12], ['mpegts', 'mpegts'], false, [3, 3]],
  ] as const) {
    it(`${fragmented ? 'of pieces' : 'fetched whole'}, in ${formats.join(' and ')}, which begin at ${begins.map((begin) => begin ?? 'no second').join(' and ')}, are cut at ${starts.join(' and ')} for a start at 3 s`, () => {
      const fetched = begins.map((begin, n) => aFile(n === 0 ? 'video' : 'audio', formats[n] ?? '', begin));
      const parts = [true, false].map((video, n) => ({ ...aPart, name: `part${n}`, video, audio: !video, fragmented }));
      const choice = { parts, start: 3, seconds: 20, section: true, expected: 17 };
      expect(planConversion(fetched, choice, { endpoint: 'video', args: {} }).starts).to.deep.equal(starts);
    });
  }
});

const aPart = { id: 'a', bytes: null };

function aFile(kind: 'video' | 'audio', format: string, begin: number | null): FetchedFile {
  const stream = { codec_type: kind, codec_name: kind === 'video' ? 'h264' : 'aac' };
  const start_time = begin === null ? 'N/A' : String(begin);
  const probe = readProbe({ format: { format_name: format, duration: '20', start_time }, streams: [stream] });
  return { file: kind, probe, ended: { code: 0, signal: null, stderr: '' }, count: 'shown' as const, plain: true };
}

/** Returns a playlist of three pieces of two seconds, the last of which is that of this name; its numbers may begin elsewhere. */
function aList(newest: number, kind: string, shift = 0): string {
  const pieces = [newest - 2, newest - 1, newest].map((n) => `#EXTINF:2,\n${kind}${n}.ts\n`);
  return `#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:${newest - 2 + shift}\n${pieces.join('')}`;
}

function filmed(number: string): Buffer {
  return readFileSync(join(makeFilms(), 'fast', `${number}.ts`));
}

function numbersOf(kind: string, asked: readonly string[]): string[] {
  return asked.filter((name) => name[0] === kind).map((name) => name.slice(1));
}

interface Recorded {
  readonly seconds: number;
  /** Pieces that were asked for. */
  readonly asked: readonly string[];
  /** Returns the seconds by which the sound of the file is late against its picture. */
  readonly delay: () => number;
}

/** Records so many seconds of a stream with sound of its own. */
async function record(
  listOf: (kind: 'v' | 'a') => string | Promise<string>,
  pieceOf: (kind: string, number: string) => Buffer | null | Promise<Buffer>,
  maxSeconds: number,
): Promise<Recorded> {
  const asked: string[] = [];
  const serve: RequestListener = async (request, response) => {
    const name = (request.url ?? '').slice(1);
    const [, kind, number] = /^([av])(\d*)\.(?:ts|m3u8)$/.exec(name) ?? [];
    if (!number) {
      const text = kind === 'v' || kind === 'a' ? await listOf(kind) : master;
      return void response.setHeader('content-type', 'application/vnd.apple.mpegurl').end(text);
    }
    asked.push(name);
    const piece = await pieceOf(kind ?? '', number);
    if (piece === null) return void response.writeHead(404).end();
    response.setHeader('content-type', 'video/mp2t').end(piece);
  };
  const film = { download_type: 'audio_video', video_format: 'mp4', max_duration: maxSeconds };
  const packets = { v: new Map<string, number>(), a: new Map<string, number>() };
  const see = (file: string) => {
    for (const kind of ['v', 'a'] as const) packets[kind] = packetsOf(file, kind);
  };
  const { seconds } = await recordLive(serve, '/master.m3u8', film, { see });
  return { seconds: seconds ?? 0, asked, delay: () => delayOf(packets) };
}

/** Compares the places of the first packets in a recording with their places in the whole film. */
function delayOf(recorded: Readonly<Record<'v' | 'a', ReadonlyMap<string, number>>>): number {
  const { folder, remove } = aFolder();
  try {
    const whole = join(folder, 'whole.mp4');
    execFileSync('ffmpeg', ['-v', 'error', '-i', join(makeFilms(), 'fast/list.m3u8'), '-c', 'copy', whole]);
    const [picture, sound] = (['v', 'a'] as const).map((kind) => {
      const places = packetsOf(whole, kind);
      const found = [...recorded[kind]].find(([hash]) => places.has(hash));
      expect(found, `a packet of the film, ${kind}`).to.not.equal(undefined);
      return (found?.[1] ?? 0) - (places.get(found?.[0] ?? '') ?? 0);
    });
    return (sound ?? 0) - (picture ?? 0);
  } finally {
    remove();
  }
}

/** Returns the second of each packet of a stream by the hash of its bytes. */
function packetsOf(file: string, kind: 'v' | 'a'): Map<string, number> {
  const fields = ['-select_streams', kind, '-show_data_hash', 'md5', '-show_entries', 'packet=pts_time,data_hash'];
  const lines = execFileSync('ffprobe', ['-v', 'error', ...fields, '-of', 'csv=p=0', file], {
    encoding: 'utf8',
  }).trim();
  return new Map(lines.split('\n').map((line) => [line.split(',')[1] ?? '', Number(line.split(',')[0])]));
}

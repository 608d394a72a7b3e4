import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';
import { decode, look, recordLive } from '../support/media.ts';

type Kind = 'v' | 'a';
const tracks = { v: 0, a: 1 } as const;
/** Pieces of one second before the stream changes. */
const pieces = 7;
const film = { download_type: 'audio_video', video_format: 'mp4', max_duration: 60 };
const master =
  '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="a.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS="avc1.42c01e,mp4a.40.2",RESOLUTION=64x36,AUDIO="a"\nv.m3u8\n';

describe('A live stream that goes on as another one', () => {
  const it = testsAtOnce(4);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    await addPieces(source, 'first', []);
    await addPieces(source, 'second', ['-vf', 'scale=96:54']);
    await addPieces(source, 'later', [], 5);
    await addPieces(source, 'last', [], 4);
  });
  after(() => source.stop());

  for (const [title, second, isMissing] of [
    ['with pictures of another size', 'second', false],
    ['with an initialization that its source does not give', 'gone', true],
  ] as const) {
    it(`D65: ${title} is delivered up to there, with picture and sound of one length`, async () => {
      const asked: string[] = [];
      const readings = { v: 0, a: 0 };
      const serve: RequestListener = (request, response) => {
        const name = (request.url ?? '').slice(1);
        const kind = name === 'v.m3u8' || name === 'a.m3u8' ? (name[0] as Kind) : null;
        if (kind !== null || name === 'master.m3u8') {
          const text = kind === null ? master : aList(kind, ++readings[kind], second);
          return void response.setHeader('content-type', 'application/vnd.apple.mpegurl').end(text);
        }
        asked.push(name);
        if (isMissing && name.startsWith('gone/init-0')) return void response.writeHead(404).end();
        const path = source.path(name.replace('gone', 'first'));
        response.setHeader('content-type', 'video/mp4').end(readFileSync(path));
      };
      let lengths: (number | null)[] = [];
      let complaints = '';
      const see = async (file: string) => {
        lengths = (await look(file)).streams.map(({ duration }) => duration);
        complaints = await decode(file);
      };
      await recordLive(serve, '/master.m3u8', film, { see });
      const recorded = asked.filter((name) => /^first\/0-\d/.test(name)).length;
      expect(recorded).to.be.at.least(2);
      expect(lengths).to.have.length(2);
      for (const length of lengths) expect(length).to.be.closeTo(recorded, 0.3);
      expect(complaints).to.equal('');
    });
  }

  it('D65: and back again within one reading of its list is delivered up to there', async () => {
    let readings = 0;
    const parts = ['first', 'first', 'first', 'first', 'second', 'second', 'first', 'first', 'first'];
    const lines = parts.map((part, n) => `${isNew(parts, n) ? aMap(part) : ''}#EXTINF:1,\n${part}/0-00${n + 1}.m4s\n`);
    const serve: RequestListener = (request, response) => {
      const name = (request.url ?? '').slice(1);
      if (name !== 'live.m3u8')
        return void response.setHeader('content-type', 'video/mp4').end(readFileSync(source.path(name)));
      readings += 1;
      const listed = readings < 8 ? lines.slice(0, 3) : [...lines, '#EXT-X-ENDLIST\n'];
      response.setHeader('content-type', 'application/vnd.apple.mpegurl').end(head + listed.join(''));
    };
    const { seconds } = await recordLive(serve, '/live.m3u8', { ...film, download_type: 'video' });
    expect(seconds).to.be.closeTo(2, 0.2);
  });

  it('D65: soon after its recording began is recorded anew behind the change', async () => {
    const others = Array.from({ length: 9 }, (_, n) => `#EXTINF:1,\nsecond/0-00${n + 1}.m4s\n`);
    const one = `${aMap('first')}#EXTINF:1,\nfirst/0-001.m4s\n#EXT-X-DISCONTINUITY\n${aMap('second')}`;
    let readings: number | null = null;
    const serve: RequestListener = (request, response) => {
      const name = (request.url ?? '').slice(1);
      if (name === 'first/0-001.m4s') readings ??= 0;
      if (name !== 'live.m3u8')
        return void response.setHeader('content-type', 'video/mp4').end(readFileSync(source.path(name)));
      if (readings !== null) readings += 1;
      response.setHeader('content-type', 'application/vnd.apple.mpegurl');
      response.end(head + one + others.slice(0, readings ?? 0).join(''));
    };
    let width: number | null = null;
    const see = async (file: string) => {
      width = (await look(file)).video?.width ?? null;
    };
    const { seconds } = await recordLive(
      serve,
      '/live.m3u8',
      { ...film, download_type: 'video', max_duration: 3 },
      { see },
    );
    expect(width).to.equal(96);
    expect(seconds).to.be.closeTo(3, 0.2);
  });

  for (const [title, second, hasSound, length] of [
    ['like the one before', 'later', true, 6.5],
    ['with pictures of another size', 'second', true, 2],
    ['without sound', 'later', false, 2],
  ] as const) {
    it(`D65: in DASH, with a new period ${title}, is delivered ${length > 2 ? 'as one' : 'up to there'}`, async () => {
      const serve = serveDash(source, (readings) => {
        const periods = [aPeriod(source, 'first', 0, Math.min(5, readings + 2), true)];
        if (readings > 3) periods.push(aPeriod(source, second, 5, Math.min(5, readings - 3), hasSound));
        // The next one is announced, and nothing of it is known yet.
        else if (readings > 2) periods.push('<Period id="soon"/>');
        return periods;
      });
      let lengths: (number | null)[] = [];
      const see = async (file: string) => {
        lengths = (await look(file)).streams.map(({ duration }) => duration);
        // The extractor reads the manifest before, so the recording begins with the fourth piece.
        if (length > 2) await expectMarks(file, 3, 9.5);
      };
      await recordLive(serve, '/live.mpd', { ...film, max_duration: 6.5 }, { see });
      expect(lengths).to.have.length(2);
      for (const each of lengths) expect(each).to.be.closeTo(length, 0.3);
    });
  }

  for (const [title, first, hasSound] of [
    ['pictures of another size', 'second', true],
    ['no sound', 'first', false],
  ] as const) {
    it(`D65: in DASH is recorded behind an earlier period with ${title}, which its manifest still lists`, async () => {
      const serve = serveDash(source, (readings) => [
        aPeriod(source, first, 0, 5, hasSound),
        aPeriod(source, 'later', 5, Math.min(5, readings), true),
      ]);
      let widths: (number | null)[] = [];
      const see = async (file: string) => {
        widths = (await look(file)).streams.map(({ width }) => width);
      };
      const { seconds } = await recordLive(serve, '/live.mpd', { ...film, max_duration: 3 }, { see });
      expect(widths).to.deep.equal([64, null]);
      expect(seconds).to.be.closeTo(3, 0.2);
    });
  }

  it('D65: in DASH, whose newest period has no sound when the recording begins, is not delivered with sound of others', async () => {
    const serve = serveDash(source, (readings) => [
      aPeriod(source, 'first', 0, 5, true),
      aPeriod(source, 'later', 5, Math.min(4, readings), false),
      ...(readings > 4 ? [aPeriod(source, 'last', 9, Math.min(5, readings - 4), true)] : []),
    ]);
    const ended = recordLive(serve, '/live.mpd', { ...film, max_duration: 5 }).catch((error: unknown) => error);
    expect(await ended).to.include({ code: 'file_damaged' });
  });

  for (const [title, missing] of [
    ['the last fragment of a period', 'first/1-005.m4s'],
    ['the first fragment of a period', 'later/1-001.m4s'],
  ] as const) {
    it(`D65: in DASH without ${title} of its sound has all other sound in time`, async () => {
      const serve = serveDash(
        source,
        (readings) => {
          const periods = [aPeriod(source, 'first', 0, Math.min(5, readings + 1), true)];
          if (readings > 4) periods.push(aPeriod(source, 'later', 5, Math.min(5, readings - 4), true));
          return periods;
        },
        missing,
      );
      let times: number[] = [];
      const see = (file: string) => {
        times = soundTimes(file);
      };
      await recordLive(serve, '/live.mpd', { ...film, max_duration: 6 }, { see });
      const gaps = times.map((time, n) => time - (times[n - 1] ?? 0)).filter((gap) => gap > 0.1);
      expect(gaps).to.have.length(1);
      expect(gaps[0]).to.be.closeTo(1, 0.1);
      expect(times.at(-1)).to.be.closeTo(6, 0.1);
    });
  }

  it('D65: is recorded behind an initialization of earlier pieces, which its list still names', async () => {
    let readings = 0;
    const serve: RequestListener = (request, response) => {
      const name = (request.url ?? '').slice(1);
      if (name !== 'live.m3u8')
        return void response.setHeader('content-type', 'video/mp4').end(readFileSync(source.path(name)));
      const second = Array.from({ length: Math.min(7, ++readings) }, (_, n) => n + 2);
      const listed = second.map((number) => `#EXTINF:1,\nsecond/0-00${number}.m4s\n`).join('');
      const text = `${head}${aMap('first')}#EXTINF:1,\nfirst/0-001.m4s\n#EXT-X-DISCONTINUITY\n${aMap('second')}${listed}`;
      response.setHeader('content-type', 'application/vnd.apple.mpegurl').end(text);
    };
    let width: number | null = null;
    const see = async (file: string) => {
      width = (await look(file)).video?.width ?? null;
    };
    const args = { ...film, download_type: 'video', max_duration: 3 };
    const { seconds } = await recordLive(serve, '/live.m3u8', args, { see });
    expect(width).to.equal(96);
    expect(seconds).to.be.closeTo(3, 0.2);
  });
});

const head = '#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:0\n';

function aMap(part: string, track = 0): string {
  return `#EXT-X-MAP:URI="${part}/init-${track}.m4s"\n`;
}

function isNew(parts: readonly string[], n: number): boolean {
  return parts[n] !== parts[n - 1];
}

/** Returns a list that has one more piece at each reading; behind `pieces` of them, the stream goes on as another one. */
function aList(kind: Kind, reading: number, second: string): string {
  const track = tracks[kind];
  const all = Array.from({ length: Math.min(10, 2 + reading) }, (_, n) => {
    const part = n < pieces ? 'first' : second;
    const begun = n === pieces ? '#EXT-X-DISCONTINUITY\n' : '';
    const map = n === 0 || n === pieces ? aMap(part, track) : '';
    return `${begun}${map}#EXTINF:1,\n${part}/${track}-${String(n + 1).padStart(3, '0')}.m4s\n`;
  });
  return head + all.join('');
}

/** Answers like the source of a live stream whose manifest lists other periods at each reading; one piece may be missing. */
function serveDash(
  source: Flashes,
  list: (readings: number) => readonly string[],
  missing: string | null = null,
): RequestListener {
  let readings = 0;
  return (request, response) => {
    const name = (request.url ?? '').slice(1);
    if (name === missing) return void response.writeHead(404).end();
    if (name !== 'live.mpd')
      return void response.setHeader('content-type', 'video/mp4').end(readFileSync(source.path(name)));
    readings += 1;
    response.setHeader('content-type', 'application/dash+xml').end(aManifest(list(readings)));
  };
}

function aManifest(periods: readonly string[]): string {
  const dates = 'availabilityStartTime="2026-01-01T00:00:00Z" minimumUpdatePeriod="PT1S"';
  return `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" ${dates}>${periods.join('')}</MPD>`;
}

/** Returns a period that lists so many pieces in a folder of its own. */
function aPeriod(source: Flashes, name: string, start: number, count: number, hasSound: boolean): string {
  const list = readFileSync(source.path(`${name}/list.mpd`), 'utf8');
  const sets = list.match(/<AdaptationSet[\s\S]*?<\/AdaptationSet>/g) ?? [];
  const listed = sets.slice(0, hasSound ? 2 : 1).map((text) =>
    text.replace(/<SegmentTimeline>[\s\S]*<\/SegmentTimeline>/, (lines) => {
      const length = /d="\d+"/.exec(lines)?.[0];
      return `<SegmentTimeline><S t="0" ${length} r="${count - 1}"/></SegmentTimeline>`;
    }),
  );
  return `<Period id="${name}" start="PT${start}S"><BaseURL>${name}/</BaseURL>${listed.join('')}</Period>`;
}

/** Makes the film as pieces of one second, with picture and sound of their own. */
async function addPieces(source: Flashes, name: string, words: readonly string[], start = 0): Promise<void> {
  source.write(`${name}/.keep`, '');
  const coded = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0', '-g', '25', '-c:a', 'aac', ...words];
  const names = [
    '-init_seg_name',
    'init-$RepresentationID$.m4s',
    '-media_seg_name',
    '$RepresentationID$-$Number%03d$.m4s',
  ];
  const sets = ['-f', 'dash', '-seg_duration', '1', '-adaptation_sets', 'id=0,streams=v id=1,streams=a'];
  await source.ffmpeg('-ss', String(start), '-i', source.film, ...coded, ...sets, ...names, join(name, 'list.mpd'));
}

/** Returns the seconds at which the packets of the sound are heard. */
function soundTimes(file: string): number[] {
  const words = ['-v', 'error', '-select_streams', 'a', '-show_entries', 'packet=pts_time', '-of', 'csv=p=0', file];
  return execFileSync('ffprobe', words, { encoding: 'utf8' }).trim().split('\n').map(Number.parseFloat);
}

import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, marks, marksOf, openFlashes } from '../support/flashes.ts';
import { durationOf, recordLive } from '../support/media.ts';

const group = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",DEFAULT=YES,URI="sound.m3u8"\n';

/** Returns so many pieces of a timeline of DASH. */
function firstOf(pieces: string, count: number): string {
  const each = [...pieces.matchAll(/<S (?:t="\d+" )?d="(\d+)"(?: r="(\d+)")?/g)];
  const lengths = each.flatMap(([, length, more]) => Array.from({ length: Number(more ?? 0) + 1 }, () => length));
  return lengths
    .slice(0, count)
    .map((length) => `<S d="${length}"/>`)
    .join('');
}

describe('A stream whose list tells little of its sound', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    for (const [name, ...maps] of [
      ['picture', '-map', '0:v'],
      ['sound', '-map', '0:a'],
      ['both', '-map', '0:v', '-map', '0:a'],
    ] as const) {
      const pieces = ['-c', 'copy', '-f', 'hls', '-hls_time', '2', '-hls_playlist_type', 'vod'];
      await source.ffmpeg('-i', source.film, ...maps, ...pieces, `${name}.m3u8`);
      await source.ffmpeg('-t', '6', '-i', source.film, ...maps, ...pieces, `short-${name}.m3u8`);
    }
  });
  after(() => source.stop());

  for (const [title, sounds, words, list] of [
    ['names no codecs and sound beside its pictures', group, ',AUDIO="a"', 'picture'],
    ['names no codecs and sound that its pictures have too', group, ',AUDIO="a"', 'both'],
    ['names the codec of its pictures alone, although they have sound', '', ',CODECS="avc1.42c00c"', 'both'],
  ] as const) {
    it(`D33: is delivered with sound where that ${title}`, async () => {
      const name = `${title.replaceAll(/\W+/g, '-')}.m3u8`;
      const picture = `#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=64x36${words}\n${list}.m3u8\n`;
      source.write(name, `#EXTM3U\n${sounds}${picture}`);
      expect(await source.make('video', name, {}, ({ file }) => expectMarks(file))).to.equal(undefined);
    });
  }

  it('D33: is delivered with sound where the first piece of its picture arrives slowly when it is read with the page', async () => {
    source.write('slow.m3u8', `#EXTM3U\n${group}#EXT-X-STREAM-INF:BANDWIDTH=300000,AUDIO="a"\npicture.m3u8\n`);
    let isFirst = true;
    const serve: RequestListener = ({ url = '' }, answer) => {
      const content = readFileSync(source.path(url.slice(1)));
      if (!url.startsWith('/picture0') || !isFirst) return void answer.end(content);
      isFirst = false;
      answer.write(content);
      const more = setInterval(() => answer.write(Buffer.alloc(512)), 100);
      answer.on('close', () => clearInterval(more));
    };
    await recordLive(serve, '/slow.m3u8', {}, { see: (file) => expectMarks(file) });
  });

  for (const [shorter, endpoint, args, seconds] of [
    ['sound', 'video', {}, 10],
    ['sound', 'video', { max_duration: 8 }, 8],
    ['sound', 'video', { download_type: 'video' }, 10],
    ['sound', 'audio', {}, 6],
    ['picture', 'video', {}, 10],
    ['picture', 'video', { max_duration: 8 }, 8],
    ['picture', 'video', { download_type: 'video' }, 6],
    ['picture', 'audio', {}, 10],
    ['picture', 'audio', { start: 7 }, 3],
  ] as const) {
    it(`D33 D92: is delivered as long as what is wanted of it lasts where its ${shorter} ends before the other (${endpoint}, ${JSON.stringify(args)})`, async () => {
      const list = (name: string) => (name === shorter ? `short-${name}.m3u8` : `${name}.m3u8`);
      const sound = group.replace('sound.m3u8', list('sound'));
      const picture = '#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=64x36,CODECS="avc1.42c00c,mp4a.40.2",AUDIO="a"\n';
      source.write(`${shorter}-ends.m3u8`, `#EXTM3U\n${sound}${picture}${list('picture')}\n`);
      const found = await source.make(endpoint, `${shorter}-ends.m3u8`, args, ({ file }) => durationOf(file));
      expect(found).to.be.closeTo(seconds, 0.5);
    });
  }

  for (const [endpoint, args] of [
    ['video', {}],
    ['audio', {}],
    ['audio', { max_duration: 4 }],
  ] as const) {
    it(`D33: ends as incomplete where the list of its sound has no end and fewer pieces than that of its picture, unless enough (${endpoint}, ${JSON.stringify(args)})`, async () => {
      const picture = '#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=64x36,CODECS="avc1.42c00c,mp4a.40.2",AUDIO="a"\n';
      const text = readFileSync(source.path('short-sound.m3u8'), 'utf8');
      source.write('endless-sound.m3u8', text.replace('#EXT-X-ENDLIST\n', ''));
      source.write('endless.m3u8', `#EXTM3U\n${group.replace('sound', 'endless-sound')}${picture}picture.m3u8\n`);
      const found = await source.make(endpoint, 'endless.m3u8', args, ({ file }) => durationOf(file));
      if ('max_duration' in args) expect(found).to.be.closeTo(4, 0.5);
      else expect(found).to.match(/^source_incomplete .*its list has no end/);
    });
  }

  for (const [name, lists, codecs, endpoint] of [
    ['picture with its sound', ['both', 'short-both'], ',CODECS="avc1.42c00c,mp4a.40.2"', 'video'],
    ['picture', ['picture', 'short-picture'], ',CODECS="avc1.42c00c"', 'video'],
    ['sound', ['sound', 'short-sound'], ',CODECS="mp4a.40.2"', 'audio'],
  ] as const) {
    it(`D33: is damaged where the best list of its ${name} ends long before another one of the same (HLS)`, async () => {
      const variants = lists.map((list, n) => `#EXT-X-STREAM-INF:BANDWIDTH=${n + 1}00000${codecs}\n${list}.m3u8\n`);
      source.write(`variants-${lists[0]}.m3u8`, `#EXTM3U\n${variants.join('')}`);
      const found = await source.make(endpoint, `variants-${lists[0]}.m3u8`, {}, ({ file }) => durationOf(file));
      expect(found).to.match(/^file_damaged lasts (5\.9|6)/);
    });
  }

  for (const [kind, endpoint, args] of [
    ['v', 'video', { download_type: 'video' }],
    ['a', 'audio', {}],
  ] as const) {
    it(`D33: is damaged where the best list of its ${kind === 'v' ? 'picture' : 'sound'} ends long before another one of the same (DASH)`, async () => {
      const names = [
        ...['-init_seg_name', `${kind}-init-$RepresentationID$`],
        ...['-media_seg_name', `${kind}-$RepresentationID$-$Number$`],
      ];
      const maps = ['-map', `0:${kind}`, '-map', `0:${kind}`, '-map', kind === 'v' ? '0:a' : '0:v'];
      const pieces = ['-c', 'copy', '-f', 'dash', '-seg_duration', '2', ...names];
      await source.ffmpeg('-i', source.film, ...maps, ...pieces, `${kind}.mpd`);
      const whole = readFileSync(source.path(`${kind}.mpd`), 'utf8');
      const best = whole.replace(/(<Representation id="0"[^>]* bandwidth=")\d+/, '$1900000');
      source.write(
        `${kind}.mpd`,
        best.replace(/<S [\s\S]*?(?=<\/SegmentTimeline>)/, (pieces) => firstOf(pieces, 3)),
      );
      const found = await source.make(endpoint, `${kind}.mpd`, args, ({ file }) => durationOf(file));
      expect(found).to.match(/^file_damaged lasts (5\.9|6)/);
    });
  }

  it('D33: is damaged where the one file of its sound is cut off between two fragments (DASH)', async () => {
    const fragments = ['-c', 'copy', '-frag_duration', '2000000', '-movflags', 'frag_keyframe+empty_moov'];
    for (const [kind, seconds] of [
      ['v', '10'],
      ['a', '6'],
    ] as const) {
      await source.ffmpeg('-t', seconds, '-i', source.film, '-map', `0:${kind}`, ...fragments, `one-${kind}.mp4`);
    }
    const sets = [
      ['video', 'avc1.42c00c', 'v'],
      ['audio', 'mp4a.40.2', 'a'],
    ].map(
      ([type, codec, kind]) =>
        `<AdaptationSet mimeType="${type}/mp4"><Representation id="${kind}" bandwidth="100000" codecs="${codec}"><BaseURL>one-${kind}.mp4</BaseURL></Representation></AdaptationSet>`,
    );
    const head = '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT10S">';
    source.write('one.mpd', `${head}<Period>${sets.join('')}</Period></MPD>`);
    const found = await source.make('audio', 'one.mpd', {}, ({ file }) => durationOf(file));
    expect(found).to.match(/^file_damaged lasts (5\.9|6)/);
  });

  it('D33: is not taken for a live one when its list has ended after less than a second', async () => {
    const pieces = ['-c', 'copy', '-f', 'hls', '-hls_playlist_type', 'vod'];
    await source.ffmpeg('-t', '0.6', '-i', source.film, ...pieces, 'tiny.m3u8');
    const found = await source.make('video', 'tiny.m3u8', {}, ({ file }) => durationOf(file));
    expect(found).to.be.closeTo(0.6, 0.2);
  });

  const asVideo = ['-map', '0:v', '-c:v', 'libx264', '-preset', 'ultrafast'];
  /** Lists an MP4 of the picture and one of the sound as two files of DASH. */
  const listFiles = async (name: string, picture: readonly string[], sound: readonly string[]) => {
    const sets = [];
    for (const [type, codec, words] of [
      ['video', 'avc1.42c00c', [...picture, ...asVideo]],
      ['audio', 'mp4a.40.2', [...sound, '-map', '0:a', '-c:a', 'aac']],
    ] as const) {
      await source.ffmpeg(...words, `${name}-${type}.mp4`);
      sets.push(
        `<AdaptationSet mimeType="${type}/mp4"><Representation id="${type}" bandwidth="100000" codecs="${codec}"><BaseURL>${name}-${type}.mp4</BaseURL></Representation></AdaptationSet>`,
      );
    }
    const head = '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT10S">';
    source.write(`${name}.mpd`, `${head}<Period>${sets.join('')}</Period></MPD>`);
  };
  const whole = () => ['-i', source.film];
  const from = (second: number) => ['-ss', String(second), '-i', source.film, '-copyts'];

  for (const [late, args] of [
    ['sound', {}],
    ['picture', {}],
    ['sound', { start: 1, end: 8 }],
  ] as const) {
    it(`D33: has both in time where each is a file by itself, of which its ${late} begins later ${JSON.stringify(args)}`, async () => {
      const isSound = late === 'sound';
      await listFiles(late, isSound ? whole() : from(2.5), isSound ? from(2.5) : whole());
      const seen = await source.make('video', `${late}.mpd`, args, ({ file }) => marksOf(file));
      const [start, end] = 'start' in args ? [args.start, args.end] : [0, 10];
      expect(seen).to.have.property('flashes');
      const { flashes, beeps } = seen as Awaited<ReturnType<typeof marksOf>>;
      for (const [kind, found] of [
        ['picture', flashes],
        ['sound', beeps],
      ] as const) {
        const first = kind === late ? 2.5 : start;
        const wanted = marks.filter((mark) => mark > first && mark < end).map((mark) => mark - start);
        expect(found, kind).to.have.lengthOf(wanted.length);
        for (const [n, second] of found.entries()) expect(second, kind).to.be.closeTo(wanted[n]!, 0.12);
      }
    });
  }

  it('D33: has both in time where each is a file with a clock of its own', async () => {
    await listFiles('clocks', [...whole(), '-output_ts_offset', '30'], whole());
    expect(await source.make('video', 'clocks.mpd', {}, ({ file }) => expectMarks(file))).to.equal(undefined);
  });

  it('D33: is silent in a part behind whose end its sound begins', async () => {
    await listFiles('silent', whole(), from(6));
    const seen = await source.make('video', 'silent.mpd', { start: 1, end: 5.5 }, ({ file }) => marksOf(file));
    expect(seen).to.have.property('flashes').with.lengthOf(3);
    expect(seen).to.have.property('beeps').with.lengthOf(0);
  });

  const repeat = async (name: string, count: number, seconds: number) => {
    for (const [kind, ...words] of [
      ['v', '-t', '1', '-i', source.film, ...asVideo],
      ['a', '-t', String(seconds), '-i', source.film, '-map', '0:a'],
    ] as const) {
      const pieces = ['-f', 'hls', '-hls_time', '9', '-hls_playlist_type', 'vod', '-hls_segment_type', 'fmp4'];
      await source.ffmpeg(
        ...words,
        ...pieces,
        '-hls_fmp4_init_filename',
        `${name}-${kind}.mp4`,
        `${name}-${kind}.m3u8`,
      );
      const once = readFileSync(source.path(`${name}-${kind}.m3u8`), 'utf8');
      const piece = /#EXTINF:.*\n.*\n/.exec(once)?.[0] ?? '';
      const more = `#EXT-X-DISCONTINUITY\n${piece}`.repeat(count - 1);
      source.write(`${name}-${kind}.m3u8`, once.replace('#EXT-X-ENDLIST', `${more}#EXT-X-ENDLIST`));
    }
    const sound = group.replace('sound', `${name}-a`);
    const picture = '#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=64x36,CODECS="avc1.42c00c,mp4a.40.2",AUDIO="a"\n';
    source.write(`${name}.m3u8`, `#EXTM3U\n${sound}${picture}${name}-v.m3u8\n`);
  };

  it('D33: stays in time behind a dozen discontinuities, between which its sound is longer by some samples than its picture (HLS)', async () => {
    const count = 12;
    await repeat('often', count, 1.02);
    const seen = await source.make('video', 'often.m3u8', {}, ({ file }) => marksOf(file));
    const { flashes, beeps } = typeof seen === 'string' ? expect.fail(seen) : seen;
    for (const found of [flashes, beeps]) {
      expect(found).to.have.lengthOf(count);
      for (const [n, second] of found.entries()) expect(second).to.be.closeTo(n + 0.6, 0.12);
    }
  });

  it('D33: keeps the whole of its sound where that is much longer than its picture between discontinuities (HLS)', async () => {
    await repeat('longer', 5, 1.5);
    const seen = await source.make('video', 'longer.m3u8', {}, ({ file }) => marksOf(file));
    expect(seen).to.have.property('flashes').with.lengthOf(5);
    expect(seen).to.have.property('beeps').with.lengthOf(5);
  });
});

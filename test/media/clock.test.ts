import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';
import { python, recordLive } from '../support/media.ts';

const media = fileURLToPath(new URL('../../src/media', import.meta.url));
/** Where the film is divided: each part of it has a clock of its own. */
const parts = [
  ['p1', 0, 2],
  ['p2', 2, 5],
  ['p3', 7, 3],
] as const;
const names = ['p1', 'p2', 'p3'];

describe('A stream of fragments', () => {
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    source.write('other/.keep', '');
    for (const [name, start, seconds] of parts) await addPart(source, name, start, seconds);
    await addPart(source, 'whole', 0, 10);
    await addPart(source, 'other', 2, 5, ['-vf', 'scale=96:54']);
  });
  after(() => source.stop());
  const good = async (name: string, args: object, from = 0, to = 10) =>
    expect(await source.make('video', name, args, ({ file }) => expectMarks(file, from, to))).to.equal(undefined);
  const periodOf = (name: string) =>
    /<Period[^>]*>([\s\S]*)<\/Period>/.exec(readFileSync(source.path(`${name}/list.mpd`), 'utf8'))?.[1] ?? '';
  const addManifest = (name: string, ...periods: string[]) =>
    source.write(
      name,
      `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT10S">${periods.join('')}</MPD>`,
    );

  it('D33: is fetched whole when its manifest says that a piece repeats to the end of the period', async () => {
    const timeline = '<SegmentTimeline><S t="0" d="1000" r="-1"/></SegmentTimeline>';
    const period = periodOf('whole').replaceAll(/<SegmentTimeline>[\s\S]*?<\/SegmentTimeline>/g, timeline);
    const counted = period.replaceAll(/timescale="\d+"/g, 'timescale="1000"');
    addManifest('repeats.mpd', `<Period><BaseURL>whole/</BaseURL>${counted}</Period>`);
    await good('repeats.mpd', {});
  });

  it('D33: is delivered whole where a piece of MP4 holds bytes as of a transport stream in their places', async () => {
    const cut = [
      '-hls_time',
      '2',
      '-hls_list_size',
      '0',
      '-hls_segment_type',
      'fmp4',
      '-hls_fmp4_init_filename',
      'step.mp4',
    ];
    await source.ffmpeg('-i', source.film, '-c', 'copy', '-f', 'hls', ...cut, 'step.m3u8');
    const free = Buffer.alloc(8 + 188 * 6, 'G');
    free.writeUInt32BE(free.length);
    free.write('free', 4);
    source.write('step1.m4s', Buffer.concat([free, readFileSync(source.path('step1.m4s'))]));
    await good('step.m3u8', {});
  });

  for (const [title, base] of [
    ['own folders', (name: string) => [`<BaseURL>${name}/</BaseURL>`, periodOf(name)]],
    ['one folder', (name: string) => ['', periodOf(name).replaceAll(/(initialization|media)="/g, `$1="${name}/`)]],
  ] as const) {
    it(`D33: is delivered with all of its periods, in ${title}, each on a clock of its own`, async () => {
      const even = (text: string) => text.replaceAll(/bandwidth="\d+"/g, 'bandwidth="100000"');
      addManifest(
        'periods.mpd',
        ...parts.map(([name, start]) => `<Period start="PT${start}S">${base(name).map(even).join('')}</Period>`),
      );
      await good('periods.mpd', {});
      await good('periods.mpd', { start: 5, end: 8.8 }, 5, 8.8);
      await good('periods.mpd', { start: 1, end: 4 }, 1, 4);
    });
  }

  it('D33: keeps sound and picture in time when the clocks of both begin at other seconds', async () => {
    addShifted(source, 'whole', 'apart', { v: 30, a: 50 });
    const timeline = periodOf('whole').replaceAll(/ t="\d+"/g, '');
    const period = offset(offset(timeline, 'video', 30), 'audio', 50);
    addManifest('apart.mpd', `<Period><BaseURL>apart/</BaseURL>${period}</Period>`);
    await good('apart.mpd', {});
  });

  it('D33: keeps sound and picture in time when the clock of one of them begins at zero', async () => {
    const period = offset(periodOf('whole').replaceAll(/ t="\d+"/g, ''), 'video', 0.08);
    addManifest('one.mpd', `<Period><BaseURL>whole/</BaseURL>${period}</Period>`);
    await good('one.mpd', {});
  });

  it('D33: keeps sound and picture in time when periods go on with a clock that meets the start of one of them alone', async () => {
    addShifted(source, 'p2', 'goes-on', { v: 2, a: 2.0107 });
    const second = offset(offset(periodOf('p2').replaceAll(/ t="\d+"/g, ''), 'video', 2), 'audio', 2.0107);
    addManifest(
      'goes-on.mpd',
      `<Period><BaseURL>p1/</BaseURL>${periodOf('p1')}</Period>`,
      `<Period start="PT2S"><BaseURL>goes-on/</BaseURL>${second}</Period>`,
    );
    await good('goes-on.mpd', { max_duration: 7.1 }, 0, 7);
  });

  it('D33: is delivered when its presentation begins within its first fragment, or elsewhere than its clock', async () => {
    for (const seconds of [12, 90_000]) {
      const period = offset(offset(periodOf('whole').replaceAll(/ t="\d+"/g, ''), 'video', seconds), 'audio', seconds);
      addManifest('within.mpd', `<Period><BaseURL>whole/</BaseURL>${period}</Period>`);
      await good('within.mpd', {});
    }
  });

  it('D33: is delivered without formats that not all periods have', async () => {
    const more = [
      '<AdaptationSet mimeType="image/jpeg"><Representation id="9" bandwidth="1"><SegmentTemplate media="$Number$.jpg" duration="10" startNumber="1"/></Representation></AdaptationSet>',
      '<AdaptationSet mimeType="video/webm"><Representation id="8" codecs="vp9" bandwidth="900000" height="1080"><SegmentTemplate media="$Number$.webm" duration="1" startNumber="1"/></Representation></AdaptationSet>',
    ];
    const periods = parts.map(
      ([name], n) => `<Period><BaseURL>${name}/</BaseURL>${periodOf(name)}${more[n] ?? ''}</Period>`,
    );
    const timed = periods.map((text, n) => text.replace('<Period>', `<Period start="PT${parts[n]?.[1]}S">`));
    addManifest('more.mpd', ...timed);
    await good('more.mpd', {});
  });

  it('D33: lasts no longer than what its manifest lists, which may state the length of a longer past', async () => {
    const timeline = (text: string) => text.replaceAll(/ t="0"/g, '');
    const stated = `<Period><BaseURL>whole/</BaseURL>${timeline(periodOf('whole'))}</Period>`;
    addManifest('past.mpd', stated);
    const text = readFileSync(source.path('past.mpd'), 'utf8');
    source.write('past.mpd', text.replace('mediaPresentationDuration="PT10S"', 'mediaPresentationDuration="PT60S"'));
    await good('past.mpd', {});
  });

  it('D33: ends as unsupported when a period has pictures of another size, which one file cannot hold', async () => {
    const named = (name: string) => `<BaseURL>${name}/</BaseURL>${periodOf(name)}`;
    const periods = ['p1', 'other', 'p3'].map(
      (name, n) => `<Period start="PT${[0, 2, 7][n]}S">${named(name)}</Period>`,
    );
    addManifest('other.mpd', ...periods);
    const ended = await source.make('video', 'other.mpd', {}, () => 'a file');
    expect(ended).to.match(/^unsupported_url .*its initialization changes/);
  });

  it('D33: of ranges of one file is that file', async () => {
    const ranges = ['-f', 'dash', '-use_template', '0', '-single_file', '1'];
    await source.ffmpeg('-i', source.film, '-c', 'copy', ...ranges, 'ranges.mpd');
    await good('ranges.mpd', {});
  });

  for (const [title, shownMaps] of [
    ['one initialization', (n: number) => n === 0],
    ['an initialization each', () => true],
  ] as const) {
    it(`D33: is delivered whole by HLS when its clock begins anew behind a discontinuity, with ${title}`, async () => {
      const lists = names.map((name, n) => {
        const lines = readFileSync(source.path(`${name}/list.m3u8`), 'utf8').split('\n');
        const own = lines.filter(
          (line) => /^#EXTINF|^[^#]/.test(line) || (line.startsWith('#EXT-X-MAP') && shownMaps(n)),
        );
        return own.map((line) => line.replace(/^(?=[^#])|(?<=URI=")/, `${name}/`)).join('\n');
      });
      source.write('anew.m3u8', aPlaylist(lists.join('\n#EXT-X-DISCONTINUITY\n')));
      await good('anew.m3u8', {});
      await good('anew.m3u8', { start: 5, end: 8.8 }, 5, 8.8);
      await good('anew.m3u8', { max_duration: 1.5 }, 0, 1.5);
    });
  }

  it('D33: keeps the clock of HLS behind a discontinuity at which it goes on, although the list states lengths coarsely', async () => {
    const lines = readFileSync(source.path('whole/list.m3u8'), 'utf8').split('\n');
    const own = lines.filter((line) => /^#EXTINF|^#EXT-X-MAP|^[^#]/.test(line));
    const named = own.map((line) => line.replace(/^(?=[^#])|(?<=URI=")/, 'whole/')).join('\n');
    const coarse = named.replace(/#EXTINF:.*\nwhole\/hls7/, '#EXTINF:1.45,\nwhole/hls7');
    source.write('goes-on.m3u8', aPlaylist(coarse.replace(/#EXTINF:.*\nwhole\/hls8/, '#EXT-X-DISCONTINUITY\n$&')));
    await good('goes-on.m3u8', {});
  });

  it('D65: is recorded from HLS with each part behind a discontinuity on a clock of its own', async () => {
    const head = '#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n';
    const map = '#EXT-X-MAP:URI="p1/init.mp4"\n';
    const pieces = names.map((name) => {
      const lines = readFileSync(source.path(`${name}/list.m3u8`), 'utf8').split('\n');
      return lines.filter((line) => /^#EXTINF|^[^#]/.test(line)).map((line) => line.replace(/^(?=[^#])/, `${name}/`));
    });
    let readings = 0;
    const serve: RequestListener = (request, response) => {
      const name = (request.url ?? '').slice(1);
      if (name !== 'live.m3u8')
        return void response.setHeader('content-type', 'video/mp4').end(readFileSync(source.path(name)));
      readings += 1;
      // The extractor reads the list before; the recording begins with the second fragment.
      const all = `${pieces.map((lines) => lines.join('\n')).join('\n#EXT-X-DISCONTINUITY\n')}\n#EXT-X-ENDLIST\n`;
      const listed = readings < 8 ? (pieces[0] ?? []).slice(0, 4).join('\n') : all;
      response.setHeader('content-type', 'application/vnd.apple.mpegurl').end(`${head}${map}${listed}\n`);
    };
    const film = { download_type: 'audio_video', video_format: 'mp4', max_duration: 60 };
    await recordLive(serve, '/live.m3u8', film, { see: (file) => expectMarks(file, 1, 10) });
  });

  it('D33: is delivered whole when its clock begins late, as that of a recording', async () => {
    addShifted(source, 'whole', 'late', { v: 3600, a: 3600 });
    const listOf = (kind: 'v' | 'a') => {
      const pieces = readdirSync(source.path('late'))
        .filter((name) => name.startsWith(`${kind}-`))
        .sort();
      const lines = pieces.map((name) => `#EXTINF:${10 / pieces.length},\nlate/${name}\n`).join('');
      source.write(`${kind}.m3u8`, aPlaylist(`#EXT-X-MAP:URI="late/init-${kind}.m4s"\n${lines}`));
    };
    listOf('v');
    listOf('a');
    const sound = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="a.m3u8"';
    const picture = '#EXT-X-STREAM-INF:BANDWIDTH=300000,CODECS="avc1.42c00c,mp4a.40.2",AUDIO="a"';
    source.write('late.m3u8', `#EXTM3U\n${sound}\n${picture}\nv.m3u8\n`);
    await good('late.m3u8', {});
  });
});

/** Returns a period in which the presentation of one kind begins at a second of its clock. */
function offset(text: string, kind: string, seconds: number): string {
  return text.replace(new RegExp(`contentType="${kind}"[\\s\\S]*?timescale="(\\d+)"`), (head, scale) => {
    return `${head} presentationTimeOffset="${Math.round(seconds * Number(scale))}"`;
  });
}

function aPlaylist(body: string): string {
  return `#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:5\n#EXT-X-MEDIA-SEQUENCE:0\n${body}\n#EXT-X-ENDLIST\n`;
}

/** Makes a part of the film as DASH and as HLS, whose clocks begin at zero. */
async function addPart(
  source: Flashes,
  name: string,
  start: number,
  seconds: number,
  words: readonly string[] = [],
): Promise<void> {
  source.write(`${name}/.keep`, '');
  const coded = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '25', '-c:a', 'aac', ...words];
  const part = ['-ss', String(start), '-t', String(seconds), '-i', source.film, ...coded];
  const sets = ['-adaptation_sets', 'id=0,streams=v id=1,streams=a', '-seg_duration', '1'];
  const files = [
    '-init_seg_name',
    'init-$RepresentationID$.m4s',
    '-media_seg_name',
    '$RepresentationID$-$Number%03d$.m4s',
  ];
  await source.ffmpeg(...part, '-f', 'dash', ...sets, ...files, join(name, 'list.mpd'));
  const hls = ['-f', 'hls', '-hls_playlist_type', 'vod', '-hls_time', '1', '-hls_segment_type', 'fmp4'];
  const pieces = ['-hls_fmp4_init_filename', 'init.mp4', '-hls_segment_filename', join(name, 'hls%d.m4s')];
  await source.ffmpeg(...part, ...hls, ...pieces, join(name, 'list.m3u8'));
}

/** Copies the DASH pieces of a part, with the clocks of picture and sound moved; the names have both letters and numbers of their tracks. */
function addShifted(source: Flashes, from: string, to: string, seconds: Readonly<Record<'v' | 'a', number>>): void {
  const script = `import sys; sys.path.insert(0, sys.argv[1]); from clock import Clock
clock = Clock()
for name in sys.argv[3:]:
    placed = clock.place(open(name, 'rb').read(), shift=float(sys.argv[2]))
    open(name, 'wb').write(placed)`;
  for (const [kind, track] of [
    ['v', 0],
    ['a', 1],
  ] as const) {
    const pieces = readdirSync(source.path(from))
      .filter((name) => name.startsWith(`${track}-`) && name.endsWith('.m4s'))
      .sort();
    for (const name of [`init-${track}.m4s`, ...pieces]) {
      const bytes = readFileSync(source.path(`${from}/${name}`));
      source.write(`${to}/${name}`, bytes);
      source.write(`${to}/${name.replace(/\d/, kind)}`, bytes);
    }
    for (const names of [
      [`init-${track}.m4s`, ...pieces],
      [`init-${kind}.m4s`, ...pieces.map((name) => name.replace(/\d/, kind))],
    ]) {
      execFileSync(python, [
        '-c',
        script,
        media,
        String(seconds[kind]),
        ...names.map((name) => source.path(`${to}/${name}`)),
      ]);
    }
  }
}

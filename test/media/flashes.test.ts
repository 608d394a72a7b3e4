import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { expectMarks, type Flashes, isInOrder, marks, marksOf, openFlashes } from '../support/flashes.ts';
import { look } from '../support/media.ts';

const copy = ['-c', 'copy'];

describe('A delivered film shows and sounds as its source', () => {
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
  });
  after(() => source.stop());
  const good = async (
    name: string,
    args: object,
    check: (file: string) => unknown,
    endpoint: 'video' | 'audio' = 'video',
  ) =>
    expect(await source.make(endpoint, name, args, async ({ file }) => void (await check(file)))).to.equal(undefined);

  const addLateSound = async () => {
    if (existsSync(source.path('late.m3u8'))) return;
    const head = '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:10\n';
    const later = ['-muxdelay', '0', '-output_ts_offset'];
    await source.ffmpeg('-i', source.film, '-map', '0:v', ...copy, ...later, '10', 'v.ts');
    await source.ffmpeg('-ss', '0.9', '-i', source.film, '-map', '0:a', '-c:a', 'aac', ...later, '10.9', 'a.ts');
    source.write('v.m3u8', `${head}#EXTINF:10,\nv.ts\n#EXT-X-ENDLIST\n`);
    source.write('a.m3u8', `${head}#EXTINF:9.1,\na.ts\n#EXT-X-ENDLIST\n`);
    const sound = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="a.m3u8"';
    const picture = '#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=64x36,CODECS="avc1.42c00c,mp4a.40.2",AUDIO="a"';
    source.write('late.m3u8', `#EXTM3U\n${sound}\n${picture}\nv.m3u8\n`);
  };
  for (const [args, from, to] of [
    [{}, 0, 10],
    [{ start: 3, end: 8 }, 3, 8],
  ] as const) {
    it(`D33: HLS whose sound begins later than its picture stays in time with it ${JSON.stringify(args)}`, async () => {
      await addLateSound();
      await good('late.m3u8', args, async (file) => {
        const { flashes, beeps } = await marksOf(file);
        const heard = flashes.filter((second) => second + from > 0.9);
        expect(flashes.length).to.equal(marks.filter((mark) => mark >= from && mark < to).length);
        expect(beeps.length).to.equal(heard.length);
        for (const [n, second] of beeps.entries()) expect(second).to.be.closeTo(heard[n]!, 0.1);
      });
    });
  }

  for (const [name, coded] of [
    ['mpeg4.avi', ['-c:v', 'mpeg4', '-bf', '2', '-q:v', '3', '-c:a', 'libmp3lame']],
    ['h264.avi', ['-c:v', 'libx264', '-bf', '2', '-c:a', 'libmp3lame']],
    ['mpeg2.mpg', ['-c:v', 'mpeg2video', '-bf', '2', '-q:v', '3', '-c:a', 'mp2']],
  ] as const) {
    for (const args of [{}, { video_format: 'mkv' }, { start: 3, end: 8 }]) {
      it(`D33: shows the pictures of ${name}, which has no time for many of them, in their order ${JSON.stringify(args)}`, async () => {
        if (!existsSync(source.path(name))) await source.ffmpeg('-i', source.film, ...coded, name);
        await good(name, args, async (file) => {
          if (!('start' in args)) expect(await isInOrder(file)).to.equal(true);
          await expectMarks(file, ...('start' in args ? [3, 8] : []));
        });
      });
    }
  }

  it('D30: cuts the sound out of an mp3 with a cover', async () => {
    const cover = [
      '-f',
      'lavfi',
      '-t',
      '1',
      '-i',
      'testsrc2=s=64x64:r=1',
      '-map',
      '0:a',
      '-map',
      '1:v',
      '-c:v',
      'mjpeg',
    ];
    await source.ffmpeg('-i', source.film, ...cover, '-disposition:v', 'attached_pic', 'cover.mp3');
    const check = async (file: string) => expect((await marksOf(file)).beeps[0]).to.be.closeTo(0.5, 0.1);
    await good('cover.mp3', { start: 3, end: 8, audio_format: 'mp3' }, check, 'audio');
  });

  it('D30: cuts a part behind the second at which the clock of an HLS stream begins anew', async () => {
    for (const [second, part] of [
      [0, ['-t', '4']],
      [4, []],
    ] as const)
      await source.ffmpeg('-ss', String(second), '-i', source.film, ...part, `anew${second}.ts`);
    const pieces = ['#EXTINF:4,\nanew0.ts\n', '#EXTINF:6,\nanew4.ts\n'];
    const list = `#EXTM3U\n#EXT-X-TARGETDURATION:6\n${pieces.join('#EXT-X-DISCONTINUITY\n')}#EXT-X-ENDLIST\n`;
    source.write('anew.m3u8', list);
    await good('anew.m3u8', { start: 8, end: 10 }, (file) => expectMarks(file, 8));
    await good('anew.m3u8', {}, (file) => expectMarks(file));
  });

  it('D32 D66: delivers a film that a phone recorded upright as one that is shown upright', async () => {
    await source.ffmpeg('-i', source.film, ...copy, 'upright.mp4');
    const film = readFileSync(source.path('upright.mp4'));
    const matrix = Buffer.from([0, 0x10000, 0, -0x10000, 0, 0, 36 << 16, 0, 0x40000000].flatMap((n) => int32(n)));
    matrix.copy(film, film.indexOf('tkhd') + 44);
    source.write('upright.mp4', film);
    source.write('no-name', film);
    for (const [name, args] of [
      ['upright.mp4', { video_format: 'mp4' }],
      ['upright.mp4', { video_format: 'mkv' }],
      ['upright.mp4', { video_format: 'webm' }],
      ['upright.mp4', { max_duration: 4 }],
      ['no-name', {}],
      ['no-name', { max_duration: 4 }],
    ] as const) {
      const seen = await source.make('video', name, args, ({ file, metadata }) => [
        shapeOf(file),
        metadata.width,
        metadata.height,
      ]);
      expect(seen, `${name} ${JSON.stringify(args)}`).to.deep.equal(['36x64', 36, 64]);
    }
  });

  for (const [name, args, from, to] of [
    ['edited.mp4', {}, 1.3, 10],
    ['edited.mov', {}, 1.3, 10],
    ['edited.mp4', { max_duration: 3.3 }, 1.3, 4.6],
    ['edited.mp4', { start: 1, end: 6 }, 2.3, 7.3],
    ['edited.mp4', { video_format: 'mkv' }, 1.3, 10],
    ['edited.mp4', { video_format: 'webm', max_duration: 3.3 }, 1.3, 4.6],
  ] as const) {
    it(`D33: shows and sounds ${name}, whose edit list leaves its beginning out, as players do ${JSON.stringify(args)}`, async () => {
      await source.ffmpeg('-ss', '1.3', '-i', source.film, ...copy, name);
      await good(name, args, (file) => expectMarks(file, from, to));
    });
  }

  for (const [name, args, from] of [
    ['slides.mp4', { start: 2.2 }, 2.2],
    ['slides.mp4', { start: 7.2, end: 9.6 }, 7.2],
    ['slides.ts', { start: 2.2, end: 9.6 }, 2.2],
  ] as const) {
    it(`D30: stays in time with its sound behind a start in the middle of a picture that is shown for a second (${name}, ${JSON.stringify(args)})`, async () => {
      const still = "select='not(between(t,2.05,3.3)+between(t,7,8.2))'";
      const coded = ['-vf', still, '-vsync', 'vfr', '-c:v', 'libx264', '-bf', '2', '-g', '50', '-c:a', 'copy'];
      await source.ffmpeg('-i', source.film, ...coded, '-muxdelay', '0', name);
      await good(name, args, (file) => expectMarks(file, from, 'end' in args ? args.end : 10));
    });
  }

  for (const [title, rate, keys, start] of [
    ['whose next picture follows at once, and whose key frame lies a minute before', 10, 1000, 70.05],
    ['that is the begin of a picture which is shown for half a second', 2, 10, 32.5],
  ] as const) {
    it(`D32: copies the pictures behind a start ${title}`, async () => {
      const picture = ['-f', 'lavfi', '-t', '80', '-i', `color=s=64x36:r=${rate}`];
      const coded = ['-c:v', 'libx265', '-x265-params', `log-level=none:keyint=${keys}:min-keyint=${keys}:bframes=0`];
      await source.ffmpeg(...picture, ...coded, `${rate}.mp4`);
      await good(`${rate}.mp4`, { start }, async (file) => expect((await look(file)).video?.codec).to.equal('hevc'));
    });
  }

  for (const [name, args, second] of [
    ['held.mp4', { start: 5, end: 30 }, 0.04],
    ['held.mp4', { start: 30, end: 52 }, 20],
    ['held.mkv', { start: 30, end: 40 }, undefined],
    ['held-reordered.mp4', { start: 5, end: 30 }, 0.04],
    ['held-reordered.mp4', { start: 0, end: 30 }, 0.04],
    ['held-reordered.mp4', { start: 30, end: 40 }, 10],
  ] as const) {
    it(`D32 D92: copies a part that starts or ends in a picture which is shown for 40 s, and makes it no longer than wanted (${name}, ${JSON.stringify(args)})`, async () => {
      const still = "select='not(between(t,10.01,49.99))'";
      const picture = ['-f', 'lavfi', '-t', '60', '-i', `color=s=64x36:r=25,${still}`];
      const sound = ['-f', 'lavfi', '-t', '60', '-i', 'sine'];
      const order = name.includes('reordered') ? 'bframes=3:b-adapt=0' : 'bframes=0';
      const coded = ['-vsync', 'vfr', '-c:v', 'libx265', '-x265-params', `log-level=none:${order}`, '-c:a', 'aac'];
      if (!existsSync(source.path(name))) await source.ffmpeg(...picture, ...sound, ...coded, name);
      await good(name, args, async (file) => {
        const { duration, video } = await look(file);
        expect(duration).to.be.closeTo(args.end - args.start, 0.1);
        expect(video?.codec).to.equal('hevc');
        const shown = timesOf(file);
        expect(shown[0]).to.equal(0);
        expect(shown.at(-1)).to.be.at.most(args.end - args.start + 0.05);
        if (second === undefined) expect(shown).to.have.length(1);
        else expect(shown[1]).to.be.closeTo(second, 0.05);
      });
    });
  }

  it('D32 D92: ends a part of a transport stream with reordered pictures in the one that is held there', async () => {
    const picture = ['-f', 'lavfi', '-t', '22', '-i', "color=s=64x36:r=25,select='not(between(t,10.01,17.99))'"];
    const coded = ['-vsync', 'vfr', '-c:v', 'libx264', '-x264-params', 'bframes=3:b-adapt=0'];
    await source.ffmpeg(...picture, '-f', 'lavfi', '-t', '22', '-i', 'sine', ...coded, 'held.ts');
    await good('held.ts', { end: 14 }, async (file) => {
      expect((await look(file)).duration).to.be.closeTo(14, 0.1);
      const shown = timesOf(file);
      expect(shown.at(-1)).to.be.at.most(14.05);
      expect(shown.filter((second) => second < 13.9).at(-1)).to.be.closeTo(10, 0.05);
    });
  });

  it('D30: cuts a part out of a film whose size is odd', async () => {
    const odd = [
      '-vf',
      'scale=65:37',
      '-c:v',
      'libvpx',
      '-deadline',
      'realtime',
      '-cpu-used',
      '8',
      '-c:a',
      'libvorbis',
    ];
    await source.ffmpeg('-i', source.film, ...odd, 'odd.webm');
    await good('odd.webm', { start: 3, end: 8 }, async (file) => {
      const { video } = await look(file);
      expect([video?.width, video?.height]).to.deep.equal([64, 36]);
      await expectMarks(file, 3, 8);
    });
  });
});

function int32(number: number): number[] {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(number);
  return [...bytes];
}

/** Returns the seconds at which a player shows the pictures of a film. */
function timesOf(file: string): number[] {
  const words = ['-v', 'error', '-select_streams', 'v', '-show_entries', 'frame=pts_time', '-of', 'csv=p=0', file];
  return (execFileSync('ffprobe', words, { encoding: 'utf8' }).match(/[\d.]+/g) ?? []).map(Number);
}

/** Returns the size of a film's first picture as a player shows it. */
function shapeOf(file: string): string {
  const words = ['-nostdin', '-hide_banner', '-i', file, '-frames:v', '1', '-vf', 'showinfo', '-f', 'null', '-'];
  const told = execFileSync('sh', ['-c', 'ffmpeg "$@" 2>&1', 'sh', ...words], { encoding: 'utf8' });
  return / s:(\d+x\d+) /.exec(told)?.[1] ?? '';
}

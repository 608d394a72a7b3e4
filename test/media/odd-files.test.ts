import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { statedLength } from '../../src/media/file-lengths.ts';
import { planConversion } from '../../src/media/plan-conversion.ts';
import { readPage } from '../../src/media/source-page.ts';
import { beepsOf, expectMarks, type Flashes, marks, marksOf, openFlashes } from '../support/flashes.ts';
import { decode, durationOf, look } from '../support/media.ts';

describe('A file with odd streams', () => {
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    const silence = ['-f', 'lavfi', '-t', '10', '-i', 'anullsrc=r=48000:cl=stereo'];
    const maps = ['-map', '0:v', '-map', '1:a', '-map', '0:a', '-c:v', 'copy', '-c:a', 'aac'];
    const flags = ['-disposition:a:0', '0', '-disposition:a:1', 'default'];
    for (const name of ['second.mkv', 'second.mp4'])
      await source.ffmpeg('-i', source.film, ...silence, ...maps, ...flags, name);
    await source.ffmpeg('-i', source.film, '-c:v', 'copy', '-c:a', 'aac', '-mpegts_flags', 'latm', 'latm.ts');
    const gap = ['-c:v', 'copy', '-af', "aselect='not(between(t,2.5,4))'", '-c:a', 'aac'];
    for (const name of ['gap.mp4', 'gap.ts']) await source.ffmpeg('-i', source.film, ...gap, name);
  });
  after(() => source.stop());

  for (const name of ['second.mkv', 'second.mp4']) {
    for (const args of [{}, { max_duration: 5.5 }, { start: 3, end: 8 }]) {
      it(`D33: is delivered with the sound that it marks as the default one, not with the first (${name}, ${JSON.stringify(args)})`, async () => {
        const [from, to] = 'start' in args ? [3, 8] : [0, 'max_duration' in args ? 5.5 : 10];
        const ended = await source.make('video', name, args, ({ file }) => expectMarks(file, from, to));
        expect(ended).to.equal(undefined);
      });
    }
  }

  it('D32: is delivered without the words of its maker, and with its index in front', async () => {
    const words = ['-metadata', 'title=Home', '-metadata', 'location=+48.1+011.5/'];
    source.write('chapters', ';FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1\nSTART=0\nEND=5\ntitle=Home\n');
    await source.ffmpeg('-i', source.film, '-c', 'copy', ...words, '-movflags', '+faststart', 'named.mp4');
    await source.ffmpeg('-i', source.film, '-i', 'chapters', '-c', 'copy', '-movflags', '+faststart', 'chapters.mp4');
    for (const name of ['named.mp4', 'chapters.mp4', source.film]) {
      const seen = await source.make('video', name, {}, ({ file }) => {
        const bytes = readFileSync(file);
        return [bytes.includes('Home'), bytes.includes('+48'), bytes.indexOf('moov') < bytes.indexOf('mdat')];
      });
      expect(seen, name).to.deep.equal([false, false, true]);
    }
  });

  it('D32: is delivered byte for byte when it is an mp4 that needs no change', async () => {
    await source.ffmpeg('-i', source.film, '-c', 'copy', '-movflags', '+faststart', 'front.mp4');
    const isSame = await source.make('video', 'front.mp4', {}, ({ file }) =>
      readFileSync(file).equals(readFileSync(source.path('front.mp4'))),
    );
    expect(isSame).to.equal(true);
  });

  it('D32: in HEVC is an mp4 with the name of it that all players know', async () => {
    const coded = ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none', '-c:a', 'copy'];
    await source.ffmpeg('-i', source.film, ...coded, 'hevc.mkv');
    await source.ffmpeg('-i', 'hevc.mkv', '-c', 'copy', 'hevc.ts');
    await source.ffmpeg('-i', 'hevc.mkv', '-c', 'copy', '-movflags', '+faststart', 'hevc.mp4');
    for (const [name, args] of [
      ['hevc.mkv', {}],
      ['hevc.ts', {}],
      ['hevc.mp4', {}],
      ['hevc.ts', { start: 3, end: 8 }],
    ] as const) {
      const ended = await source.make('video', name, args, async ({ file }) => {
        expect(readFileSync(file).includes('hvc1')).to.equal(true);
        expect(await decode(file)).to.equal('');
        await expectMarks(file, ...('start' in args ? [3, 8] : []));
      });
      expect(ended, name).to.equal(undefined);
    }
  });

  it('D30: whose sound or picture ends before the wanted second is delivered without that sound, and not without that picture', async () => {
    const both = ['-map', '0:v', '-map', '1:a', '-c', 'copy'];
    await source.ffmpeg('-i', source.film, '-t', '4', '-i', source.film, ...both, 'v.mp4');
    await source.ffmpeg('-t', '4', '-i', source.film, '-i', source.film, ...both, 'a.mp4');
    const kindsOf = (endpoint: 'video' | 'audio', name: string) =>
      source.make(endpoint, name, { start: 6 }, async ({ file }) => (await look(file)).streams.map(({ kind }) => kind));
    expect(await kindsOf('video', 'v.mp4')).to.deep.equal(['video']);
    expect(await kindsOf('audio', 'v.mp4')).to.match(/^start_beyond_end/);
    expect(await kindsOf('audio', 'a.mp4')).to.deep.equal(['audio']);
    expect(await kindsOf('video', 'a.mp4')).to.match(/^start_beyond_end/);
  });

  for (const [name, title] of [
    ['mp4', 'an mp4'],
    ['mkv', 'an mkv, which tells the length of the whole alone'],
    ['ts', 'a transport stream'],
  ] as const) {
    it(`D92: whose sound ends before its picture, or after it, is delivered when only one of them is wanted (${title})`, async () => {
      const both = ['-map', '0:v', '-map', '1:a', '-c', 'copy'];
      await source.ffmpeg('-i', source.film, '-t', '4.5', '-i', source.film, ...both, `v.${name}`);
      await source.ffmpeg('-t', '4', '-i', source.film, '-i', source.film, ...both, `a.${name}`);
      source.write(`v.${name}.m3u8`, `#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nv.${name}\n#EXT-X-ENDLIST\n`);
      const lengthOf = (endpoint: 'video' | 'audio', path: string, args: object) =>
        source.make(endpoint, path, args, ({ file }) => durationOf(file));
      const sound = { audio_format: 'm4a' };
      const picture = { download_type: 'video', video_format: 'mp4' };
      expect(await lengthOf('audio', `v.${name}`, sound)).to.be.closeTo(4.5, 0.2);
      expect(await lengthOf('video', `a.${name}`, picture)).to.be.closeTo(4, 0.2);
      if (name === 'ts') expect(await lengthOf('audio', 'v.ts.m3u8', sound)).to.be.closeTo(4.5, 0.2);
    });
  }

  it('D33: whose header tells a length that its packets do not reach does not excuse the short sound taken out of it', async () => {
    await source.ffmpeg('-i', source.film, '-c:v', 'flv1', '-c:a', 'aac', 'whole.flv');
    const whole = readFileSync(source.path('whole.flv'));
    source.write('short.flv', whole.subarray(0, Math.floor(whole.length / 2)));
    const probe = await look(source.path('short.flv'));
    expect(probe.duration).to.be.closeTo(10, 0.2);
    const file = {
      file: 'short.flv',
      probe,
      ended: { code: 0, signal: null, stderr: '' },
      count: 'none' as const,
      plain: false,
    };
    const part = { id: 'a', name: 'short.flv', video: true, audio: true, bytes: null, fragmented: false };
    const choice = { parts: [part], start: 0, seconds: null, section: false, expected: 10 };
    const plan = planConversion([file], choice, { endpoint: 'audio', args: { audio_format: 'm4a' } });
    expect(statedLength(plan, [file], { page: readPage({}), choice }, null)).to.equal(10);
  });

  it('D33: whose subtitles last longer than picture and sound is delivered (mkv, which tells the length of the whole alone)', async () => {
    const line = (second: number) => `00:00:${second},000 --> 00:00:${second + 1},000\nEnd\n`;
    source.write('late.srt', `1\n${line(17)}`);
    const maps = ['-map', '0', '-map', '1'];
    await source.ffmpeg('-i', source.film, '-i', 'late.srt', ...maps, '-c', 'copy', '-c:s', 'srt', 'late-words.mkv');
    const ended = await source.make('video', 'late-words.mkv', {}, ({ file }) => expectMarks(file));
    expect(ended).to.equal(undefined);
  });

  it('D33: in pieces whose head calls its length unknown, by all ones, is delivered', async () => {
    await source.ffmpeg('-i', source.film, '-c', 'copy', '-movflags', 'frag_keyframe+empty_moov', 'unknown.mp4');
    const film = readFileSync(source.path('unknown.mp4'));
    for (let at = film.indexOf('mdhd'); at > 0; at = film.indexOf('mdhd', at + 4))
      film.writeUInt32BE(2 ** 32 - 1, at + 20);
    source.write('unknown.mp4', film);
    for (const args of [{}, { start: 3, end: 8 }]) {
      const length = await source.make('video', 'unknown.mp4', args, ({ file }) => durationOf(file));
      expect(length, JSON.stringify(args)).to.be.closeTo('start' in args ? 5 : 10, 0.2);
    }
  });

  it('D33: of two parts with sample rates of their own, as a radio sends them, is delivered with all of its sound', async () => {
    const parts = [48_000, 44_100].map(async (rate) => {
      await source.ffmpeg('-i', source.film, '-vn', '-ar', String(rate), '-c:a', 'libvorbis', `${rate}.ogg`);
      return readFileSync(source.path(`${rate}.ogg`));
    });
    source.write('chain.ogg', Buffer.concat(await Promise.all(parts)));
    const seen = await source.make('audio', 'chain.ogg', { audio_format: 'mp3' }, ({ file }) => beepsOf(file));
    expect(seen)
      .to.be.an('array')
      .with.lengthOf(2 * marks.length);
    for (const [n, second] of [...marks, ...marks.map((mark) => mark + 10)].entries()) {
      expect(seen[n]).to.be.closeTo(second, 0.12);
    }
  });

  it('D30: whose picture begins after its sound is cut up to the end of that picture', async () => {
    const late = ['-itsoffset', '2', '-i', source.film, '-i', source.film];
    await source.ffmpeg(...late, '-map', '0:v', '-map', '1:a', '-c', 'copy', 'late.mp4');
    const kinds = await source.make('video', 'late.mp4', { start: 11 }, async ({ file }) =>
      (await look(file)).streams.map(({ kind }) => kind),
    );
    expect(kinds).to.deep.equal(['video']);
    expect(await source.make('video', 'late.mp4', { start: 12.5 }, () => 'a file')).to.match(/^start_beyond_end/);
  });

  for (const name of ['late.mp4', 'late.mkv']) {
    it(`D30: whose picture begins after its sound has all of it when it is cut before that picture (${name})`, async () => {
      const late = ['-itsoffset', '2', '-i', source.film, '-i', source.film];
      await source.ffmpeg(...late, '-map', '0:v', '-map', '1:a', '-c', 'copy', name);
      const wanted = marks.filter((mark) => mark > 1 && mark < 4).map((mark) => mark - 1);
      const seen = await source.make('video', name, { start: 1, end: 4 }, ({ file }) => marksOf(file));
      const { flashes, beeps } = seen as Awaited<ReturnType<typeof marksOf>>;
      expect(beeps).to.have.lengthOf(wanted.length);
      for (const [n, second] of wanted.entries()) expect(beeps[n]).to.be.closeTo(second, 0.12);
      expect(flashes[0]).to.be.closeTo(marks[0] + 2 - 1, 0.12);
    });
  }

  for (const layout of ['5.1(side)', '7.1', 'quad']) {
    it(`D32: whose sound is ${layout} has AAC in 5.1, which players know, where it is encoded`, async () => {
      const sound = ['-f', 'lavfi', '-t', '10', '-i', `anoisesrc=a=0.1:r=48000,aformat=channel_layouts=${layout}`];
      const coded = ['-map', '0:v', '-map', '1:a', '-c:v', 'copy', '-c:a', 'flac'];
      await source.ffmpeg('-i', source.film, ...sound, ...coded, 's.mkv');
      for (const [endpoint, args] of [
        ['video', { video_format: 'mp4' }],
        ['audio', { audio_format: 'm4a' }],
      ] as const) {
        const seen = await source.make(endpoint, 's.mkv', args, ({ file }) => {
          const words = ['-v', 'error', '-select_streams', 'a', '-show_entries', 'stream=codec_name,channel_layout'];
          return execFileSync('ffprobe', [...words, '-of', 'csv=p=0', file], { encoding: 'utf8' }).trim();
        });
        expect(seen).to.equal('aac,5.1');
      }
    });
  }

  for (const name of ['gap.mp4', 'gap.ts']) {
    for (const args of [
      { audio_format: 'mp3' },
      { audio_format: 'wav' },
      { audio_format: 'mp3', start: 1, end: 9.5 },
    ] as const) {
      it(`D33: whose sound has a gap is silent there, and in time behind it (${name}, ${JSON.stringify(args)})`, async () => {
        const [from, to]: readonly [number, number] = 'start' in args ? [args.start ?? 0, args.end ?? 10] : [0, 10];
        const heard = marks.filter((mark) => mark >= from && mark < to && mark !== 3.5).map((mark) => mark - from);
        const beeps = await source.make('audio', name, args, ({ file }) => beepsOf(file));
        expect(beeps).to.be.an('array').with.lengthOf(heard.length);
        for (const [n, second] of heard.entries()) expect(beeps[n]).to.be.closeTo(second, 0.12);
      });
    }
  }

  for (const [endpoint, args, ext] of [
    ['video', { video_format: 'mp4' }, 'mp4'],
    ['video', { download_type: 'audio', video_format: 'mp4' }, 'm4a'],
    ['audio', { audio_format: 'm4a' }, 'm4a'],
  ] as const) {
    it(`D32: of broadcasting, in AAC for which an MP4 has no name, is delivered with sound that it has (${endpoint}, ${JSON.stringify(args)})`, async () => {
      const ended = await source.make(endpoint, 'latm.ts', args, async ({ file, metadata }) => {
        expect(metadata.ext).to.equal(ext);
        expect((await look(file)).audio?.codec).to.equal('aac');
        expect(await decode(file)).to.equal('');
        if (ext === 'mp4') await expectMarks(file);
      });
      expect(ended).to.equal(undefined);
    });
  }
});

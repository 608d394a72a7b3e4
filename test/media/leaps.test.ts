import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, marksOf, openFlashes } from '../support/flashes.ts';
import { durationOf } from '../support/media.ts';

const coded = ['-c:v', 'libx264', '-preset', 'ultrafast', '-c:a', 'aac'];

describe('A stream of pieces', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    await source.ffmpeg('-t', '5', '-i', source.film, ...coded, '-output_ts_offset', '1', '-muxdelay', '0', 'first.ts');
  });
  after(() => source.stop());
  const good = async (name: string, args: { start?: number; end?: number }) => {
    const ended = await source.make('video', name, args, ({ file }) => expectMarks(file, args.start, args.end));
    expect(ended, name).to.equal(undefined);
  };

  for (const [title, seconds, all] of [
    ['a second', 1, [{}]],
    ['less than ten seconds', 9, [{}, { start: 3, end: 8 }]],
    ['more than ten seconds, which ffmpeg joins by itself', 15, [{}]],
  ] as const) {
    it(`D33: is delivered whole by HLS when its clock leaps ahead at a discontinuity by ${title}`, async () => {
      const [list, name] = [`leap${seconds}.m3u8`, `leap${seconds}.ts`];
      const clock = ['-output_ts_offset', String(6 + seconds), '-muxdelay', '0'];
      await source.ffmpeg('-ss', '5', '-i', source.film, ...coded, ...clock, name);
      const parts = ['first.ts', name].map((part) => `#EXTINF:5,\n${part}\n`);
      source.write(list, `#EXTM3U\n#EXT-X-TARGETDURATION:5\n${parts.join('#EXT-X-DISCONTINUITY\n')}#EXT-X-ENDLIST\n`);
      for (const args of all) await good(list, args);
      const length = await source.make('audio', list, { audio_format: 'mp3' }, ({ file }) => durationOf(file));
      expect(length).to.be.closeTo(10, 0.2);
    });
  }

  for (const [title, name, words] of [
    [
      'pictures stand still for a second',
      'still',
      ['-vf', "select='lt(mod(t,2),0.5)+between(n,124,125)'", '-vsync', 'vfr'],
    ],
    ['sound has gaps', 'gaps', ['-af', "aselect='not(between(t,2,3)+between(t,6,7.5))'"]],
  ] as const) {
    it(`D33: whose ${title} is in time by HLS when its clock leaps ahead at a discontinuity by a second`, async () => {
      const whole = `${name}.mkv`;
      await source.ffmpeg('-i', source.film, ...words, ...coded, whole);
      const parts = [];
      for (const begin of [0, 5]) {
        const clock = ['-vsync', 'vfr', '-output_ts_offset', String(begin && 7), '-muxdelay', '0'];
        await source.ffmpeg('-ss', String(begin), '-t', '5', '-i', whole, ...coded, ...clock, `${name}${begin}.ts`);
        parts.push(`#EXTINF:5,\n${name}${begin}.ts\n`);
      }
      const list = `#EXTM3U\n#EXT-X-TARGETDURATION:5\n${parts.join('#EXT-X-DISCONTINUITY\n')}#EXT-X-ENDLIST\n`;
      source.write(`${name}.m3u8`, list);
      const seen = await source.make('video', `${name}.m3u8`, {}, ({ file }) => marksOf(file));
      const wanted = await marksOf(source.path(whole));
      for (const kind of ['flashes', 'beeps'] as const) {
        const seconds = (seen as typeof wanted)[kind];
        expect(seconds, kind).to.have.lengthOf(wanted[kind].length);
        for (const [n, second] of wanted[kind].entries()) expect(seconds[n], kind).to.be.closeTo(second, 0.15);
      }
    });
  }

  for (const kind of ['mpegts', 'fmp4']) {
    it(`D91: is incomplete by HLS where its server answers for a piece with a page, in the middle or at the end (${kind})`, async () => {
      const pieces = ['-hls_time', '2', '-hls_playlist_type', 'vod', '-hls_segment_type', kind];
      const names = ['-hls_segment_filename', `${kind}%d`, '-hls_fmp4_init_filename', `${kind}.mp4`];
      await source.ffmpeg('-i', source.film, '-c', 'copy', ...pieces, ...names, `${kind}.m3u8`);
      await good(`${kind}.m3u8`, {});
      const list = readFileSync(source.path(`${kind}.m3u8`), 'utf8');
      for (const [name, page] of Object.entries({
        'page.html': '<!DOCTYPE html><title>Blocked</title>Zu viele Anfragen, später wieder',
        'page.json': `{"error": "${'é'.repeat(300)}"}`,
        'blank.txt': '\n',
        'latin.html': Buffer.from('\r\n<html><title>Gesperrt für Sie</title>', 'latin1'),
      })) {
        source.write(name, page);
        for (const number of [2, 4]) {
          source.write(`some-${kind}.m3u8`, list.replace(`\n${kind}${number}\n`, `\n${name}\n`));
          const seen = await source.make('video', `some-${kind}.m3u8`, {}, () => 'a file');
          expect(seen, `${name} ${number}`).to.match(/^source_incomplete/);
        }
      }
    });
  }

  for (const [name, cut] of [
    ['pictures', 150],
    ['index', 1000],
  ] as const) {
    it(`D91: is incomplete by DASH where a server sends less of a piece than there is, so that nothing could be read behind it (${name})`, async () => {
      const folder = `dash-${name}`;
      source.write(`${folder}/list.mpd`, '');
      const words = ['-c', 'copy', '-f', 'dash', '-seg_duration', '2', '-use_timeline', '1', `${folder}/list.mpd`];
      await source.ffmpeg('-i', source.film, ...words);
      await good(`${folder}/list.mpd`, {});
      const piece = `${folder}/chunk-stream0-00003.m4s`;
      const whole = readFileSync(source.path(piece));
      source.write(piece, whole.subarray(0, whole.length - cut));
      expect(await source.make('video', `${folder}/list.mpd`, {}, () => 'a file')).to.match(/^source_incomplete/);
    });
  }
});

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { makeFilms } from '../support/films.ts';
import { python, recordLive } from '../support/media.ts';
import { root } from '../support/tree.ts';

/** Manifest of a live film of segments of one second each; `more` are its adaptation sets after that of the picture. */
function manifest(template: string, more = ''): string {
  return `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z" minimumUpdatePeriod="PT1S" profiles="urn:mpeg:dash:profile:isoff-live:2011"><Period id="0" start="PT10S"><AdaptationSet contentType="video" mimeType="video/mp4"><Representation id="0" codecs="avc1.42c01e" bandwidth="286962" width="640" height="360">${template}</Representation></AdaptationSet>${more}</Period></MPD>`;
}

const names = 'initialization="init-stream0.m4s" media="chunk-stream0-$Number%05d$.m4s"';

describe('A live DASH stream', () => {
  const it = testsAtOnce(4);

  it('D65: is recorded from its newest segment on, which its manifest lists one by one', async () => {
    const stages = new Set<string>();
    const { made, asked, readings } = await record((reading) => aTimeline(Math.max(2, reading - 1)), 2, stages);
    expect([...stages], 'nobody interrupts it from its recording on').to.deep.equal([
      'inspect',
      'record',
      'convert',
      'prove',
    ]);
    expect(made.liveStatus).to.equal('is_live');
    expect(made.seconds).to.be.closeTo(2, 0.2);
    expect(asked).to.deep.equal([asked[0], (asked[0] ?? 0) + 1]);
    expect(readings).to.be.at.least(3);
  });

  it('D65: which ends before max_duration is delivered to its end, without what came before the recording', async () => {
    const manifestOf = (reading: number) =>
      reading < 5 ? aTimeline(Math.max(2, reading - 1)) : aTimeline(4).replace('"dynamic"', '"static"');
    const { made, asked } = await record(manifestOf, 60, new Set());
    expect(asked[0]).to.be.at.least(2);
    expect(asked).to.deep.equal([2, 3, 4].slice(-asked.length));
    expect(made.seconds).to.be.closeTo(asked.length, 0.2);
  });

  it('D65: is recorded with picture and sound of the same segments, although a segment is added with each reading', async () => {
    const { made, asked, sound } = await record((reading) => aTimeline(reading, aSound), 2, new Set());
    expect(asked).to.have.length(2);
    expect(sound).to.deep.equal(asked);
    expect(made.seconds).to.be.closeTo(2, 0.2);
  });

  for (const [title, timeline, seconds, expected] of [
    ['one piece repeats', '<S t="100" d="192" r="-1"/>', 100, [54, 55, 56]],
    ['a piece repeats behind others', '<S t="100" d="150" r="9"/><S d="192" r="-1"/>', 100, [56, 57, 58]],
    ['the repeating piece has just begun', '<S t="100" d="150" r="1"/><S d="192" r="-1"/>', 5, [5, 6, 7]],
  ] as const) {
    it(`D65: of whose timeline ${title} without end has the newest pieces of it`, () => {
      const template = `<SegmentTemplate timescale="100" presentationTimeOffset="100" startNumber="5" ${names}><SegmentTimeline>${timeline}</SegmentTimeline></SegmentTemplate>`;
      const chunks = expected.map((number) => `chunk-stream0-${String(number).padStart(5, '0')}.m4s`);
      expect(listedAfter(seconds, template)).to.deep.equal(['init-stream0.m4s', ...chunks]);
    });
  }

  it('whose segments are counted by the clock has the three newest of them', () => {
    // 100 s hold 52 whole segments of 1.92 s, whose numbers begin with 5.
    const chunks = [54, 55, 56].map((number) => `chunk-stream0-000${number}.m4s`);
    const template = `<SegmentTemplate timescale="100" duration="192" startNumber="5" ${names}/>`;
    expect(listedAfter(100, template)).to.deep.equal(['init-stream0.m4s', ...chunks]);
    const announced = (text: string) => text.replace('</MPD>', '<Period id="soon"/></MPD>');
    expect(listedAfter(100, template, announced), 'with a period that begins later').to.deep.equal([
      'init-stream0.m4s',
      ...chunks,
    ]);
  });

  it('D65: which has ended has no segments behind its end, although the clock goes on', () => {
    const chunks = [5, 6, 7].map((number) => `chunk-stream0-0000${number}.m4s`);
    const template = `<SegmentTemplate timescale="100" duration="192" startNumber="5" ${names}/>`;
    const ended = (text: string) => text.replace('"dynamic"', '"static" mediaPresentationDuration="PT15S"');
    expect(listedAfter(100, template, ended)).to.deep.equal(['init-stream0.m4s', ...chunks]);
  });
});

/** Returns the pieces that a manifest lists so many seconds after its period began. */
function listedAfter(seconds: number, template: string, change = (text: string) => text): string[] {
  const script = `
import json, sys
sys.path.insert(0, sys.argv[1])
import live, manifests
manifests.patch_parser()
doc = live.compat_etree_fromstring(sys.argv[2].encode())
live.number_segments(doc, live.parse_iso8601('2026-01-01T00:00:10Z') + int(sys.argv[3]))
import yt_dlp
found = yt_dlp.YoutubeDL({'quiet': True}).get_info_extractor('Generic')._parse_mpd_formats(doc, mpd_base_url='http://a', mpd_url='http://a/b')
print(json.dumps([each['path'] for each in found[0]['fragments']]))
`;
  const words = ['-I', '-c', script, join(root, 'src/media'), change(manifest(template)), String(seconds)];
  return JSON.parse(execFileSync(python, words, { encoding: 'utf8' })) as string[];
}

/** Returns a manifest that lists so many segments, of which there are four. */
function aTimeline(listed: number, more: (template: string) => string = () => ''): string {
  const timeline = `<SegmentTimeline><S t="0" d="12800" r="${Math.min(4, listed) - 1}"/></SegmentTimeline>`;
  const template = (of: string) =>
    `<SegmentTemplate timescale="12800" startNumber="1" ${of}>${timeline}</SegmentTemplate>`;
  return manifest(template(names), more(template(names.replaceAll('stream0', 'stream1'))));
}

function aSound(template: string): string {
  return `<AdaptationSet contentType="audio" mimeType="audio/mp4"><Representation id="1" codecs="mp4a.40.2" bandwidth="128000" audioSamplingRate="44100">${template}</Representation></AdaptationSet>`;
}

/** Records so many seconds of a stream; the extractor reads its manifest before the recording begins. */
async function record(manifestOf: (reading: number) => string, maxSeconds: number, stages: Set<string>) {
  const asked: number[] = [];
  const sound: number[] = [];
  let readings = 0;
  const serve: RequestListener = (request, response) => {
    const name = (request.url ?? '').slice(1);
    if (name === 'list.mpd')
      return void response.setHeader('content-type', 'application/dash+xml').end(manifestOf(++readings));
    if (name.startsWith('chunk')) (name.includes('stream0') ? asked : sound).push(Number(name.slice(14, 19)));
    response.setHeader('content-type', 'video/mp4').end(readFileSync(join(makeFilms(), 'dash', name)));
  };
  const film = { download_type: 'audio_video', video_format: 'mp4', max_duration: maxSeconds };
  const made = await recordLive(serve, '/list.mpd', film, { told: (stage) => stages.add(stage) });
  return { made, asked, sound, readings };
}

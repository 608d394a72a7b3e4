import { expect } from 'chai';
import fc from 'fast-check';
import { describeMedia, describePage } from '../../src/media/describe-media.ts';
import { ffmpegArguments, ffprobeArguments } from '../../src/media/ffmpeg-arguments.ts';
import { makeOverallProgress } from '../../src/media/overall-progress.ts';
import { readProbe } from '../../src/media/probe-file.ts';
import { readPage } from '../../src/media/source-page.ts';
import type { AttemptProgress } from '../../src/model/attempt-protocol.ts';
import { metadataFields } from '../../src/model/metadata.ts';

const query = 'http://example.com/film';
const describe19 = (fields: unknown) => describePage(readPage(fields), { endpoint: 'metadata', args: { query } });

describe('The metadata of a medium', () => {
  it('metadata-live_status metadata-upload_date: keeps the texts of a page and rounds its counts', () => {
    const words = {
      id: '7',
      title: 'A film',
      like_count: 67.4,
      view_count: 12,
      upload_date: '20260102',
      duration: 9.5,
      live_status: 'was_live',
      uploader: 'Somebody',
    };
    const facts = describe19({
      ...words,
      formats: [{ format_id: 'x', ext: 'mp4', vcodec: 'avc1', height: 720, width: 1280 }],
    });
    expect(facts).to.include({
      id: '7',
      title: 'A film',
      like_count: 67,
      view_count: 12,
      upload_date: 20260102,
      duration: 9.5,
    });
    expect(facts).to.include({
      live_status: 'was_live',
      was_live: true,
      is_live: false,
      channel: 'Somebody',
      ext: 'mp4',
      width: 1280,
      height: 720,
      original_url: query,
    });
  });

  it('D66: takes from the file what its page does not say', () => {
    const probe = { format: { duration: '9.9' }, streams: [{ codec_type: 'video', width: 640, height: 360 }] };
    const facts = describe19({ direct: true, probe, formats: [{ format_id: 'x', ext: 'mp4' }] });
    expect(facts).to.include({
      width: 640,
      height: 360,
      duration: 9.9,
      ext: 'mp4',
      is_live: false,
      live_status: 'not_live',
    });
  });

  it('describes a delivered file by its own facts, not by its page', () => {
    const probe = readProbe({ format: { duration: '3.01' }, streams: [{ codec_type: 'audio' }] });
    const facts = describeMedia(readPage({ duration: 60, width: 1, height: 2, ext: 'webm' }), { query }, null, {
      ext: 'mp3',
      probe,
    });
    expect(facts).to.include({ ext: 'mp3', width: null, height: null, duration: 3.01 });
  });

  it('D26: is null for everything that a page does not say', () => {
    expect(describe19({ formats: [{ format_id: 'x', ext: 'unknown_video' }] })).to.include({
      ext: null,
      live_status: null,
      is_live: null,
      upload_date: null,
    });
  });

  it('metadata-fields: has 19 fields whatever a page says', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('formats', 'probe', ...Object.keys(metadataFields)), fc.anything()),
        (fields) => {
          expect(Object.keys(describe19(fields))).to.deep.equal(Object.keys(metadataFields));
        },
      ),
    );
  });
});

describe('The progress of a job', () => {
  it('D20: never falls, stays below 91 and ends at 90, whatever the stages say', () => {
    const stage = fc.constantFrom('inspect', 'fetch', 'convert', 'prove');
    const steps = fc.array(fc.tuple(stage, fc.double({ noNaN: true }), fc.option(fc.nat(), { nil: undefined })));
    fc.assert(
      fc.property(fc.boolean(), steps, (encodes, all) => {
        const told: AttemptProgress[] = [];
        let now = 0;
        const progress = makeOverallProgress(
          encodes,
          (each) => told.push(each),
          () => (now += 300),
        );
        for (const [name, fraction, bytes] of all) progress.at(name as (typeof all)[number][0], fraction, bytes);
        progress.at('prove', 1);
        const numbers = told.map((each) => each.progress);
        expect(numbers).to.deep.equal([...numbers].sort((one, other) => one - other));
        expect(numbers.at(-1) ?? 90).to.equal(90);
      }),
    );
  });

  it('stays a number when ffmpeg does not know how far it is, as before its first picture', () => {
    const told: AttemptProgress[] = [];
    const progress = makeOverallProgress(
      true,
      (each) => told.push(each),
      () => 0,
    );
    progress.at('convert', 0.25);
    progress.at('convert', Number('N/A'));
    progress.at('convert', 0.5);
    progress.at('prove', 1);
    expect(told.map((each) => each.progress)).to.deep.equal([63, 71, 90]);
  });

  it('derives speed and remaining seconds from the bytes', () => {
    const told: AttemptProgress[] = [];
    let now = 0;
    const progress = makeOverallProgress(
      false,
      (each) => told.push(each),
      () => now,
    );
    progress.at('fetch', 0, 0);
    now = 2000;
    progress.at('fetch', 0.25, 1000);
    expect(told.at(-1)).to.deep.equal({ progress: 22, stage: 'fetch', speed_bytes: 500, eta_seconds: 6 });
  });
});

describe('The arguments of ffmpeg and ffprobe', () => {
  it('put both whitelists before every input', () => {
    for (const words of [
      ffmpegArguments([{ file: '/a' }, { file: '-b' }], ['-c', 'copy'], '/out'),
      ffprobeArguments('/a', 'shown'),
    ]) {
      for (const [n, word] of words.entries()) {
        if (word !== '-i') continue;
        expect(words.slice(n - 4, n).filter((each) => each.startsWith('-'))).to.deep.equal([
          '-protocol_whitelist',
          '-format_whitelist',
        ]);
        expect(words[n - 3]).to.equal('file,pipe');
        expect(words[n - 1]).to.not.match(/hls|concat|dash|rtp|rtsp|sdp|lavfi|image2/);
        expect(words[n + 1]).to.match(/^file:/);
      }
    }
  });
});

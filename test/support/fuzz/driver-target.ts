import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { chooseFormatsFor } from '../../../src/media/choose-formats.ts';
import { describeMedia } from '../../../src/media/describe-media.ts';
import { readProbe } from '../../../src/media/probe-file.ts';
import type { SourcePage } from '../../../src/media/source-page.ts';
import { spawnChild } from '../../../src/media/spawn-child.ts';
import { Failed, type MediaOrder, type MediaTools } from '../../../src/media/tools.ts';
import { startYtDlp } from '../../../src/media/yt-dlp.ts';
import { readMetadata } from '../../../src/model/metadata.ts';
import { readVerdict } from '../../../src/model/outcome.ts';
import { type Frame, makeFrameReader } from '../../../src/worker/inspector-output.ts';
import { aFolder } from '../redis.ts';
import { type Campaign, fuzz } from './campaign.ts';
import { expectStable, liveBytes } from './process-memory.ts';

/** An object that cannot be turned into a text or a number, as JSON can write it. */
const stubborn = { toString: 1, valueOf: null };
const number = fc.oneof(fc.constantFrom(0, -1, 1e308, 720, 2 ** 53), fc.double({ noNaN: true }));
const word = fc.oneof(
  fc.constantFrom('http', 'm3u8', 'none', 'avc1', 'mp4a.40.2', 'is_live', 'mp4', '\ud800', 'x'.repeat(20_000)),
  fc.string({ unit: 'binary', maxLength: 30 }),
);
const anything = fc.oneof(
  number,
  word,
  fc.constantFrom<unknown>(null, true, [], {}, stubborn, [stubborn]),
  fc.jsonValue({ maxDepth: 3 }),
);
const members = (names: readonly string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, anything])), { requiredKeys: [] });
const format = members(
  'format_id ext vcodec acodec width height fps tbr abr filesize filesize_approx protocol preference language_preference'.split(
    ' ',
  ),
);
const fields = members(
  'id ext title width height channel is_live was_live live_status duration extractor thumbnail like_count upload_date webpage_url direct release_timestamp probe'.split(
    ' ',
  ),
);
const info = fc
  .tuple(fields, fc.oneof(fc.array(fc.oneof(format, anything), { maxLength: 6 }), anything))
  .map(([page, formats]) => ({ ...page, formats }));
const probe = fc.record(
  {
    streams: fc.oneof(
      fc.array(members(['index', 'codec_type', 'codec_name', 'width', 'disposition', 'bit_rate'])),
      anything,
    ),
    format: members(['format_name', 'duration']),
  },
  { requiredKeys: [] },
);
const failed = members(['class', 'message', 'stage', 'http', 'expected', 'verdict', 'causes']);
const progress = members(['part', 'bytes', 'total']);
const message = fc.oneof(
  fc.record({ info: fc.oneof({ weight: 4, arbitrary: info }, anything) }),
  fc.record({ info: fc.tuple(info, probe).map(([page, probed]) => ({ ...page, probe: probed })) }),
  fc.record({ failed: fc.oneof({ weight: 4, arbitrary: failed }, anything) }),
  fc.record({ progress: fc.oneof({ weight: 4, arbitrary: progress }, anything) }),
  fc.record({ done: anything }),
  anything,
);
const line = fc.oneof(
  { weight: 8, arbitrary: message.map((json) => JSON.stringify(json) ?? '') },
  fc.string({ unit: 'binary', maxLength: 50 }),
);
const output = fc.array(line, { minLength: 1, maxLength: 5 }).map((lines) => `${lines.join('\n')}\n`);
const order = fc.record<MediaOrder>({
  endpoint: fc.constantFrom('video', 'audio', 'metadata'),
  args: fc.record(
    {
      query: fc.constant('https://example.com/x'),
      max_duration: fc.constantFrom(2, 4000),
      download_type: fc.constantFrom('audio', 'video'),
    },
    { requiredKeys: ['query'] },
  ),
});

/** Lets a child say what a taken-over yt-dlp may say, and reads it as the worker does, for some time. */
export async function fuzzDriver(ms: number): Promise<Campaign> {
  const { folder, remove } = aFolder();
  const limits = { fileBytes: 1e9, inspectSeconds: 10, slowBytes: 1, slowSeconds: 10 };
  const paths = { python: 'python3', driver: '', ffmpeg: '', ffprobe: '', node: '', wrappers: '', proxy: '' };
  const hear = async ([said, ordered]: [string, MediaOrder], place: number) => {
    const file = join(folder, String(place));
    writeFileSync(file, said);
    const run: MediaTools['run'] = (_command, _args, options) => spawnChild('cat', [file], options);
    const tools: MediaTools = { ...paths, folder, limits, plugins: [], cookies: null, run };
    const ytDlp = startYtDlp('download', ordered, tools, new AbortController().signal);
    const page = await ytDlp.page.catch(expectFailed);
    // Nobody hears what was said before: the driver fetches when it is told to.
    await Promise.all([ytDlp.fetch([], null, () => undefined).catch(expectFailed), ytDlp.end()]);
    if (page) usePage(page, ordered);
  };
  // A child takes some time to start and to end, so there are several at once.
  const input = fc.array(fc.tuple(output, order), { minLength: 1, maxLength: 16 });
  const run = async (all: [string, MediaOrder][]) => void (await Promise.all(all.map(hear)));
  try {
    await fuzz({ name: 'driver', input, run }, ms / 10);
    const warm = liveBytes();
    const campaign = await fuzz({ name: 'driver', input, run }, ms);
    expectStable(warm, liveBytes(), 'the worker');
    return campaign;
  } finally {
    remove();
  }
}

/** Returns nothing for the failure of a job, and throws every other error. */
function expectFailed(error: unknown): null {
  if (!(error instanceof Failed)) throw error;
  return null;
}

function usePage(page: SourcePage, order: MediaOrder): void {
  try {
    const metadata = describeMedia(page, { query: 'https://example.com/x' }, page.formats[0] ?? null);
    expect(readMetadata(metadata)).to.deep.equal(metadata);
    expect(readVerdict(JSON.parse(JSON.stringify({ is: 'done', metadata, delivered: null })))).to.not.equal(null);
    if (page.probe) readProbe(page.probe);
    chooseFormatsFor(page, order);
  } catch (error) {
    expectFailed(error);
  }
}

const frame = fc.oneof<fc.Arbitrary<Frame>[]>(
  fc.record({ is: fc.constant('pid'), id: fc.nat(9), pid: fc.nat() }),
  fc.record({ is: fc.constant('end'), id: fc.nat(9), code: fc.integer({ min: -64, max: 255 }) }),
  fc.record({
    is: fc.constant('out'),
    id: fc.nat(9),
    bytes: fc
      .oneof(
        fc.uint8Array(),
        fc.constantFrom('ready\n', '1 out 5\n', '1 end 0\n', '\n').map((text) => Buffer.from(text)),
      )
      .map(Buffer.from),
  }),
);

/** Cuts what an inspector parent says at any place, and reads it back, for some time. */
export function fuzzFrames(ms: number): Promise<Campaign> {
  const input = fc.tuple(fc.array(frame, { maxLength: 12 }), fc.array(fc.nat(200), { maxLength: 20 }));
  const run = async ([frames, cuts]: [Frame[], number[]]) => {
    const told: Frame[] = [];
    let isReady = false;
    const read = makeFrameReader(
      () => {
        isReady = true;
      },
      (one) => told.push(one),
    );
    let rest = Buffer.concat([Buffer.from('ready\n'), ...frames.map(bytesOf)]);
    for (const cut of [...cuts, rest.length]) {
      read(rest.subarray(0, cut));
      rest = rest.subarray(cut);
    }
    read(rest);
    expect(isReady).to.equal(true);
    expect(told.map(bytesOf)).to.deep.equal(frames.map(bytesOf));
  };
  return fuzz({ name: 'frames', input, run }, ms);
}

function bytesOf(frame: Frame): Buffer {
  if (frame.is === 'out') return Buffer.concat([Buffer.from(`${frame.id} out ${frame.bytes.length}\n`), frame.bytes]);
  return Buffer.from(`${frame.id} ${frame.is} ${frame.is === 'pid' ? frame.pid : frame.code}\n`);
}

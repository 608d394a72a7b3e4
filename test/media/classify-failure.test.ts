import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { failures, isFailureCode } from '../../src/base/errors.ts';
import { classifyFailure, classifyFfmpeg, readFailure } from '../../src/media/classify-failure.ts';
import { python } from '../support/media.ts';

interface Row {
  readonly message: string;
  /** The exception's class; `ffmpeg` for what ffmpeg writes. */
  readonly class: string;
  readonly code: string;
  /** The file of the package that raises it. */
  readonly file: string;
  /** The literal text of the message, without its values. */
  readonly find?: string;
}

const corpus = new URL('./failures.jsonl', import.meta.url);
const rows = readFileSync(corpus, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Row);

describe('The failure code of a message of yt-dlp or ffmpeg', () => {
  const texts = new Map<string, string>();
  let folder: string;
  let libraries: string;
  before(() => {
    const lib = join(python, '../../lib');
    folder = join(lib, readdirSync(lib).find((name) => name.startsWith('python3')) ?? '', 'site-packages/yt_dlp');
    libraries = execFileSync('ldd', ['/usr/bin/ffmpeg'], { encoding: 'utf8' });
  });
  const find = ({ file, class: name }: Row) => {
    const library = new RegExp(`${file}\\S* => (\\S+)`).exec(libraries)?.[1] ?? '/usr/bin/ffmpeg';
    const path = name === 'ffmpeg' ? realpathSync(library) : join(folder, file);
    const text = texts.get(path) ?? readFileSync(path, name === 'ffmpeg' ? 'latin1' : 'utf8');
    texts.set(path, text);
    return text;
  };

  it('is tested with at least 150 messages, none of them twice', () => {
    expect(new Set(rows.map(({ message, class: name }) => `${name} ${message}`)).size)
      .to.equal(rows.length)
      .and.to.be.at.least(150);
  });

  for (const row of rows) {
    it(`D16: ${row.code}: ${row.message.slice(0, 90)}`, () => {
      expect(isFailureCode(row.code)).to.equal(true);
      expect(find(row).includes(row.find ?? row.message), `${row.file} says it`).to.equal(true);
      if (row.class === 'ffmpeg') return expect(classifyFfmpeg(row.message)).to.equal(row.code);
      expect(classifyFailure(said(row))).to.equal(row.code);
    });
  }

  for (const [what, failure, code] of [
    [
      'D91: a missing fragment is no deleted film',
      { http: 404, stage: 'fetch', fragmented: true },
      'source_incomplete',
    ],
    ['D58: a film that is gone while it is fetched was deleted', { http: 404, stage: 'fetch' }, 'deleted'],
    ['egress refused', { verdict: 'refused_address', http: 403 }, 'address_not_allowed'],
    ['egress could not connect', { verdict: 'failed_connect', http: 502 }, 'source_broken'],
    ['a tunnel was refused', { message: 'Tunnel connection failed: 403 refused_address' }, 'address_not_allowed'],
    [
      'words in a name or a URL count for nothing',
      { message: 'ERROR: [some:site] private-deleted: Oh http://x/drm', expected: true },
      'unclassified',
    ],
    ['words of the source win over its status', { message: 'This video is private', http: 403 }, 'private'],
    ['code that breaks', { classes: ['DownloadError', 'KeyError'], message: "'formats'" }, 'extractor_failed'],
    ...['private', 'location', 'token', 'title', 'subscription', 'copyright', 'nsfw'].map(
      (key) => [`D97: a crash for want of the key ${key}`, crash(key), 'extractor_failed'] as const,
    ),
    [
      'D97: a crash without the words of yt-dlp',
      { classes: ['AttributeError'], message: "'NoneType' object has no attribute 'token'" },
      'extractor_failed',
    ],
    [
      'a crash for want of memory for a thread',
      { classes: ['DownloadError', 'KeyError'], message: `${crash('x').message} | can't start new thread` },
      'worker_failed',
    ],
    ...['JSON Web Token', 'login form', 'authenticity_token', 'expired', 'logged-in username'].map(
      (name) => [`D97: an extractor that seeks the ${name} in vain`, sought(name), 'extractor_failed'] as const,
    ),
    [
      'words of the source about what an extractor sought in vain',
      { message: 'ERROR: [x] 1: This video is private | Unable to extract title', expected: true },
      'private',
    ],
    ['D97: no ID in a page', { message: 'ERROR: [genius] x: Song id not found in webpage' }, 'extractor_failed'],
    [
      'a page that is known to have no medium',
      { message: 'Brightcove video ID not found in webpage', expected: true },
      'video_unavailable',
    ],
    // Words of YouTube's own, which no file of yt-dlp has.
    ['D60: a film that must be bought', { message: 'This video requires payment to watch.' }, 'members_only'],
    [
      'D58: a film that is no film yet',
      { message: "We're processing this video. Check back later." },
      'video_unavailable',
    ],
    ['something unheard of', { classes: ['DownloadError'], message: 'Oops', stage: 'fetch' }, 'unclassified'],
  ] as const) {
    it(`${what}: ${code}`, () =>
      expect(
        classifyFailure({ ...said({ message: '', class: 'ExtractorError' }), expected: false, ...failure }),
      ).to.equal(code));
  }

  it('is sought in 10,000 characters: a child that wrote 1 MB kept the inspector from all others for a minute', () => {
    const { message } = readFailure({ message: '[generic] '.repeat(50_000), causes: ['[generic] '.repeat(50_000)] });
    expect(message.length).to.equal(10_000);
  });

  it('has a sentence that needs no knowledge of yt-dlp', () => {
    for (const { sentence } of Object.values(failures)) expect(sentence).to.not.match(/yt-dlp|ffmpeg|--/);
  });
});

/** Returns the failure of an extractor whose code reads a key that is not there. */
function crash(key: string) {
  const message = `ERROR: 1: An extractor error has occurred. (caused by KeyError('${key}')); please report this issue on  https://github.com/yt-dlp/yt-dlp/issues?q= | '${key}'`;
  return { classes: ['DownloadError', 'KeyError'], message };
}

function sought(name: string) {
  const message = `[x] id: Unable to extract ${name}`;
  return { classes: ['DownloadError', 'RegexNotFoundError'], message: `ERROR: ${message} | ${message}` };
}

function said({ message, class: name }: Pick<Row, 'message' | 'class'>) {
  const stage: 'inspect' | 'fetch' = name === 'DownloadError' ? 'fetch' : 'inspect';
  return { classes: [name], message, stage, http: null, expected: true, verdict: null };
}

import { execFileSync, spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { expect } from 'chai';
import { inspectUrl, listEntries } from '../../src/media/inspect-url.ts';
import { produce } from '../../src/media/produce-file.ts';
import { spawnChild } from '../../src/media/spawn-child.ts';
import { Failed, type MediaTools, type RunChild } from '../../src/media/tools.ts';
import { pythonFlags, startYtDlp } from '../../src/media/yt-dlp.ts';
import { aTools, driver, openMediaFixture, plugins, python } from '../support/media.ts';
import { aFolder } from '../support/redis.ts';

const never = new AbortController().signal;

/** Lines of Python behind the import of the driver. */
const withDriver = (lines: string) => `
import sys
sys.path.insert(0, ${JSON.stringify(dirname(driver))})
import driver
${lines}`;

const saidBy = (lines: string) =>
  execFileSync(python, [...pythonFlags, '-c', withDriver(lines)], { encoding: 'utf8' }).trim();

describe('The driver of yt-dlp', () => {
  it('has the same extractors in the same order as yt-dlp, plugins included', () => {
    const said = saidBy(`
driver.prepare([${JSON.stringify(plugins)}])
options = driver.options({'proxy': '', 'tools': '/', 'node': '/'}, print)
ours, theirs = driver.Downloader(options), driver.yt_dlp.YoutubeDL(options)
print(list(ours._ies.items()) == list(theirs._ies.items()), len(ours._ies) > 1000, 'TestPage' in ours._ies)
`);
    expect(said).to.equal('True True True');
  });

  it('reads the certificates of the authorities once for all requests of a process', () => {
    const said = saidBy(`
import ssl
driver.prepare([])
read, times = ssl.SSLContext.load_default_certs, []
ssl.SSLContext.load_default_certs = lambda *words: times.append(1) or read(*words)
options = driver.options({'proxy': '', 'tools': '/', 'node': '/'}, print)
handlers = [driver.Downloader(options)._request_director.handlers['Urllib'] for _ in range(3)]
print(len(times), *(len(each._make_sslcontext().get_ca_certs()) > 10 for each in handlers), len(times))
`);
    expect(said).to.equal('0 True True True 1');
  });

  for (const [owner, name] of [
    ['networking._urllib.HTTPHandler', 'gz'],
    ['extractor.common.InfoExtractor', '_parse_m3u8_vod_duration'],
    ['YoutubeDL', 'process_ie_result'],
  ] as const) {
    it(`ends with a sentence that names version and place where a yt-dlp has no ${name}, which trawl replaces`, () => {
      const text = withDriver(`
del driver.yt_dlp.${owner}.${name}
driver.prepare([])
`);
      const { status, stderr } = spawnSync(python, [...pythonFlags, '-c', text], { encoding: 'utf8' });
      expect(status, stderr).to.equal(1);
      expect(stderr.trim().split('\n').at(-1)).to.match(
        new RegExp(`^hooks.Unfit: yt-dlp [\\d.]+ has no \\w+\\.${name}, which trawl replaces: use the version`),
      );
    });
  }

  it('says only numbers that JSON has, whatever a page says', () => {
    const said = saidBy(`
import json
print(json.dumps([driver.bounded(each) for each in (float('nan'), float('inf'), 10 ** 5000, 1.5, True, 'text' * 9000)]))
`);
    expect(JSON.parse(said)).to.deep.equal([null, null, null, 1.5, true, 'text'.repeat(2500)]);
  });

  it('fails its job, and ends no process, when it is taken over and says objects that are neither text nor number', async () => {
    const stubborn = { toString: 1, valueOf: 1 };
    const { folder, remove } = aFolder();
    const order = { endpoint: 'video', args: { query: 'https://example.com/x' } } as const;
    const plain = aTools(folder, 'http://127.0.0.1:9');
    const hear = async (said: object) => {
      const run: RunChild = (_command, _args, options) =>
        spawnChild('printf', ['%s\\n', JSON.stringify(said)], options);
      const tools = { ...plain, run };
      const { page, end } = startYtDlp('download', order, tools, never);
      const heard = await page.then(
        ({ formats }) => formats,
        (error: Error) => error,
      );
      await end();
      return heard;
    };
    const [format] = (await hear({
      info: { formats: [{ format_id: stubborn, ext: stubborn, protocol: stubborn }] },
    })) as object[];
    expect(format).to.include({ id: '', ext: '', protocol: '' });
    for (const said of [
      { progress: { part: stubborn } },
      { failed: { message: stubborn, class: [stubborn], causes: [stubborn] } },
    ]) {
      expect(await hear(said)).to.be.instanceOf(Failed);
    }
    remove();
  });

  it('is heard no more after its failure: each further one took the inspector 5 ms, which serves all accounts', async () => {
    let hear: (line: string) => void = () => undefined;
    const run: RunChild = (_command, _args, { onLine = () => undefined }) => {
      hear = onLine;
      return { write: () => undefined, ended: Promise.resolve({ code: 0, signal: null, stderr: '' }) };
    };
    const { folder, remove } = aFolder();
    const order = { endpoint: 'video', args: { query: 'https://example.com/x' } } as const;
    const tools = { ...aTools(folder, 'http://127.0.0.1:9'), run };
    const { fetch, end } = startYtDlp('download', order, tools, never);
    const heard: number[] = [];
    const fetched = fetch([], null, ({ bytes }) => heard.push(bytes)).catch((error: unknown) => error);
    for (const said of [{ progress: { bytes: 1 } }, { failed: {} }, { progress: { bytes: 2 } }])
      hear(JSON.stringify(said));
    expect(await fetched).to.be.instanceOf(Failed);
    expect(heard).to.deep.equal([1]);
    await end();
    remove();
  });

  it('is ended once it has answered: one that was taken over stays, and its slot of the inspector with it', async () => {
    const { folder, remove } = aFolder();
    const query = 'https://example.com/x';
    const plain = aTools(folder, 'http://127.0.0.1:9');
    const answers: [said: object, ask: (tools: MediaTools) => Promise<unknown>][] = [
      [{ info: {} }, (tools) => inspectUrl({ endpoint: 'metadata', args: { query } }, tools, never)],
      [{ entries: [query] }, (tools) => listEntries(query, 1, tools, never)],
    ];
    for (const [said, ask] of answers) {
      let hasEnded = false;
      const run: RunChild = (_command, _args, options) => {
        const child = spawnChild('sh', ['-c', 'echo "$0"; exec sleep 60', JSON.stringify(said)], options);
        const ended = child.ended.finally(() => {
          hasEnded = true;
        });
        return { ...child, ended };
      };
      await ask({ ...plain, run });
      expect(hasEnded, JSON.stringify(said)).to.equal(true);
    }
    remove();
  });

  it('reads and writes every letter in an ASCII locale', async () => {
    const fixture = await openMediaFixture();
    const { folder, remove } = aFolder();
    const title = 'Über ein Café – 映画 🎬';
    const query = fixture.source.addPage('letters', {
      info: { title, formats: [{ format_id: 'x', url: `${fixture.source.url}/films/clip.mp4`, ext: 'mp4' }] },
    });
    const plain: RunChild = (command, args, options) =>
      spawnChild(command, args, { ...options, env: { ...options.env, LANG: 'C', LC_ALL: 'C', PYTHONUTF8: '0' } });
    const order = { endpoint: 'video', args: { query: `${query}?q=é`, video_format: 'mp4' } } as const;
    const tools = { ...aTools(folder, fixture.proxy.url), run: plain };
    try {
      const { metadata } = await produce(order, tools, () => undefined, never);
      expect(metadata).to.include({ title, original_url: `${query}?q=é` });
    } finally {
      await fixture.stop();
      remove();
    }
  });

  for (const [what, wrong, described] of [
    ['an upload date that no calendar has', { upload_date: '20231345' }, { upload_date: null, title: 'A film' }],
    ['an upload date of one digit', { upload_date: '0' }, { upload_date: null }],
    ['an upload date that is a number', { upload_date: 20260102 }, { upload_date: null }],
    ['a list of pictures in place of one', { thumbnail: [{ url: 'https://example.com/1.jpg' }] }, { thumbnail: null }],
    ['a list of pictures without URLs', { thumbnails: [{ id: 1 }, { id: 'x' }] }, { thumbnail: null }],
    [
      'a wrong picture beside a right one',
      { thumbnails: [{ url: 'https://example.com/1.jpg', width: '9' }, { url: 2, id: 3 }, null] },
      { thumbnail: 'https://example.com/1.jpg' },
    ],
    [
      'pictures whose ids are numbers',
      { thumbnails: [10, 9].map((id) => ({ url: `https://example.com/${id}.jpg`, id })) },
      { thumbnail: 'https://example.com/10.jpg' },
    ],
    [
      'formats that are none beside a right one',
      { more: [null, 'x', { url: 5 }, { url: 'x.mp4' }] },
      { title: 'A film' },
    ],
    [
      'a format whose fields have other types',
      {
        format: {
          ext: 5,
          vcodec: ['h264'],
          acodec: 1,
          protocol: {},
          http_headers: 'x',
          preference: 'high',
          cookies: 1,
        },
      },
      { title: 'A film' },
    ],
    ['headers that are none', { http_headers: 5 }, { title: 'A film' }],
    ['chapters without times', { chapters: [null] }, {}],
    ['subtitles without URLs', { subtitles: { en: [{}] }, automatic_captions: { en: null } }, {}],
    ['an artist who is a list', { artist: ['Somebody'], genres: [null] }, {}],
    ['an infinite length', { duration: '1e999' }, {}],
    ['infinite facts of its format', { format: { tbr: '1e999', fps: '1e999', height: '1e999' } }, { title: 'A film' }],
  ] as const) {
    it(`D26: delivers and describes a film whose page gives ${what}, and loses no more than that`, async () => {
      const fixture = await openMediaFixture();
      type Wrong = Record<string, unknown> & { readonly format?: object; readonly more?: readonly unknown[] };
      const { format = {}, more = [], ...fields }: Wrong = { ...wrong };
      const formats = [{ format_id: 'x', url: `${fixture.source.url}/films/clip.mp4`, ext: 'mp4', ...format }, ...more];
      // JSON has no infinity, but Python reads this number as one.
      const page = JSON.stringify({ info: { title: 'A film', formats, ...fields } }).replaceAll('"1e999"', '1e999');
      const order = {
        endpoint: 'video',
        args: { query: fixture.source.addPage('odd', page), video_format: 'mp4' },
      } as const;
      const { folder, remove } = aFolder();
      try {
        const inspected = await inspectUrl(
          { ...order, endpoint: 'metadata' },
          aTools(folder, fixture.proxy.url),
          never,
        );
        expect(inspected).to.include(described);
        await fixture.make(order, ({ produced }) => expect(produced?.metadata).to.include(described));
      } finally {
        remove();
        await fixture.stop();
      }
    });
  }

  it('D26: describes live content by the title of its page, to which yt-dlp adds the time at which it is read', async () => {
    const fixture = await openMediaFixture();
    const { folder, remove } = aFolder();
    const title = 'A concert 2026-03-04 12:00';
    const formats = [{ format_id: 'x', url: `${fixture.source.url}/films/clip.mp4`, ext: 'mp4' }];
    const query = fixture.source.addPage('stage', { info: { title, is_live: true, formats } });
    try {
      const order = { endpoint: 'metadata', args: { query } } as const;
      const seen = await inspectUrl(order, aTools(folder, fixture.proxy.url), never);
      expect(seen).to.include({ title, is_live: true, live_status: 'is_live' });
    } finally {
      remove();
      await fixture.stop();
    }
  });

  for (const [name, expected] of [
    ['page.mp4', 'unsupported_url'],
    ['noise.mp4', 'unsupported_url'],
    ['sparse.bin', 'unsupported_url'],
    ['empty.mp4', 'file_damaged'],
    ['truncated.mp4', 'file_damaged'],
    ['clip.mp4', 'a duration'],
    ['audio.m4a', 'a duration'],
  ] as const) {
    it(`D27 D62 D97: metadata of ${name} ends as ${expected}; those of bytes that are no media were all null, and charged`, async () => {
      const fixture = await openMediaFixture();
      const { folder, remove } = aFolder();
      const order = { endpoint: 'metadata', args: { query: `${fixture.source.url}/films/${name}` } } as const;
      try {
        const told = inspectUrl(order, aTools(folder, fixture.proxy.url), never);
        const ended = await told.then(
          ({ duration }) => (duration === null ? 'no duration' : 'a duration'),
          (error: unknown) => (error instanceof Failed ? error.code : error),
        );
        expect(ended).to.equal(expected);
      } finally {
        remove();
        await fixture.stop();
      }
    });
  }
});

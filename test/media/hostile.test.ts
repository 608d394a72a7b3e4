import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { probeWhole } from '../../src/media/plain-mp4.ts';
import { produce } from '../../src/media/produce-file.ts';
import { spawnChild } from '../../src/media/spawn-child.ts';
import { Failed, type MediaOrder, type MediaTools } from '../../src/media/tools.ts';
import { makeFilms } from '../support/films.ts';
import { aTools, type MediaFixture, openMediaFixture } from '../support/media.ts';
import { aFolder } from '../support/redis.ts';

describe('A hostile source', () => {
  let fixture: MediaFixture;
  let folder: string;
  let remove: () => void;
  const hits: string[] = [];
  const canary = createServer((asking, answer) => {
    hits.push(asking.url ?? '');
    answer.end('secret');
  });
  let inside: string;
  before(async () => {
    fixture = await openMediaFixture();
    await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve));
    inside = `http://127.0.0.1:${(canary.address() as AddressInfo).port}`;
  });
  after(async () => {
    canary.close();
    await fixture.stop();
  });
  beforeEach(() => {
    ({ folder, remove } = aFolder());
    hits.length = 0;
  });
  afterEach(() => remove());

  const order = (query: string, args = {}): MediaOrder => ({
    endpoint: 'video',
    args: { query, download_type: 'audio_video', video_quality: 'best', video_format: 'mp4', ...args },
  });
  const raw = (type: string, text: string) => `${fixture.source.url}/raw?type=${type}&text=${encodeURIComponent(text)}`;
  const run = async (wanted: MediaOrder, tools: MediaTools = aTools(folder, fixture.proxy.url)) => {
    const end: unknown = await produce(wanted, tools, () => undefined, new AbortController().signal).catch(
      (error) => error,
    );
    return end instanceof Failed ? end.code : end;
  };

  const start = (command: string, words: string[]) =>
    new Promise((resolve) => spawn(command, words, { cwd: folder, stdio: 'ignore' }).on('exit', resolve));

  const lists = {
    'an HLS list': '#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nsecret.ts\n#EXT-X-ENDLIST\n',
    'a concat list': "ffconcat version 1.0\nfile 'secret.ts'\n",
  };
  for (const [name, text] of Object.entries(lists)) {
    it(`a "film" that is ${name} of a file beside it becomes no file`, async () => {
      copyFileSync(join(makeFilms(), 'hls/0.ts'), join(folder, 'secret.ts'));
      // Without our rules ffmpeg would read it: the test proves something.
      writeFileSync(join(folder, 'trap.mp4'), text);
      execFileSync(
        'ffmpeg',
        ['-nostdin', '-v', 'error', '-allowed_extensions', 'ALL', '-i', 'trap.mp4', '-c', 'copy', 'out.mkv'].filter(
          (word, n, all) =>
            name === 'an HLS list' || (word !== '-allowed_extensions' && all[n - 1] !== '-allowed_extensions'),
        ),
        { cwd: folder },
      );
      expect(await run(order(raw('video/mp4', text)))).to.equal('unsupported_url');
      expect(readdirSync(folder).filter((file) => file.startsWith('media'))).to.deep.equal([]);
    });
  }

  const m3u8 = 'application/vnd.apple.mpegurl';
  const playlist = (lines: string) => `#EXTM3U\n#EXT-X-TARGETDURATION:9\n${lines}\n#EXT-X-ENDLIST\n`;
  const mpd = (base: string) =>
    `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT9S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period><BaseURL>${base}</BaseURL><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1" width="64" height="36" codecs="avc1.42c00a"><SegmentTemplate media="$Number$.m4s" initialization="init.m4s" duration="3" timescale="1"/></Representation></AdaptationSet></Period></MPD>`;
  const traps: Readonly<Record<string, () => string>> = {
    'a redirect': () => `${fixture.source.url}/to?to=${inside}/film.mp4`,
    'a chain of redirects': () => `${fixture.source.url}/to?to=/to?to=${inside}/film.mp4`,
    'a segment': () => raw(m3u8, playlist(`#EXTINF:9,\n${inside}/0.ts`)),
    'a variant': () => raw(m3u8, `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\n${inside}/variant.m3u8\n`),
    'a key': () =>
      raw(
        m3u8,
        playlist(`#EXT-X-KEY:METHOD=AES-128,URI="${inside}/key"\n#EXTINF:9,\n${fixture.source.url}/films/hls/0.ts`),
      ),
    'a map': () =>
      raw(m3u8, playlist(`#EXT-X-MAP:URI="${inside}/init.mp4"\n#EXTINF:9,\n${fixture.source.url}/films/hls/0.ts`)),
    'the base of a manifest': () => raw('application/dash+xml', mpd(`${inside}/`)),
    'a page': () => raw('text/html', `<!doctype html><html><video src="${inside}/film.mp4"></video></html>`),
    'a file of the machine': () => raw(m3u8, playlist('#EXTINF:9,\nfile:///etc/hostname')),
  };
  for (const [name, trap] of Object.entries(traps)) {
    it(`${name} that points to an internal host or file is not followed, neither whole, nor in part, nor for metadata`, async () => {
      const folders = [aFolder(), aFolder()];
      const [one, other] = folders.map((each) => aTools(each.folder, fixture.proxy.url));
      const metadata = { endpoint: 'metadata', args: { query: trap() } } as const;
      const ends = await Promise.all([
        run(order(trap())),
        run(order(trap(), { max_duration: 2 }), one),
        inspectUrl(metadata, other ?? aTools(folder, ''), new AbortController().signal).catch(
          (error: unknown) => error instanceof Failed,
        ),
      ]);
      for (const each of folders) each.remove();
      expect(ends[0]).to.be.a('string');
      expect(ends[1]).to.be.a('string');
      expect(hits).to.deep.equal([]);
    });
  }

  it('the ffmpeg wrapper refuses files named by URLs, and URLs and playlists named by files', async () => {
    await run(order(`${fixture.source.url}/status/404`));
    const wrapper = join(folder, 'tools/ffmpeg');
    writeFileSync(join(folder, 'trap.mp4'), lists['a concat list']);
    copyFileSync(join(makeFilms(), 'hls/0.ts'), join(folder, 'secret.ts'));
    for (const input of [
      'trap.mp4',
      'concat:secret.ts|secret.ts',
      raw(m3u8, playlist(`#EXTINF:9,\nfile://${folder}/secret.ts`)),
      'subfile,,start,0,end,0,,:secret.ts',
    ]) {
      const done = await start(wrapper, ['-v', 'error', '-y', '-i', input, '-c', 'copy', 'out.mkv']);
      expect(`${done !== 0} ${existsSync(join(folder, 'out.mkv'))}`, input).to.equal('true false');
    }
    expect(await start(wrapper, ['-v', 'error', '-i', 'secret.ts', '-c', 'copy', 'out.mkv'])).to.equal(0);
  });

  for (const path of ['/bomb', '/endless-page', '/endless-gzip']) {
    it(`${path} is ended with little memory`, async () => {
      const few: MediaTools['run'] = (command, args, options) =>
        spawnChild('prlimit', [`--data=${300e6}`, command, ...args], options);
      expect(await run(order(fixture.source.url + path), { ...aTools(folder, fixture.proxy.url), run: few })).to.equal(
        'file_too_large',
      );
    });
  }

  it('an MP4 with thousands of chapters is read no further than shows that it has too many', async () => {
    const chapter = (n: number) => `[CHAPTER]\nTIMEBASE=1/1000\nSTART=${n}\nEND=${n + 1}\ntitle=x\n`;
    const many = join(folder, 'many');
    writeFileSync(many, `;FFMETADATA1\n${Array.from({ length: 40_000 }, (_, n) => chapter(n)).join('')}`);
    const [film, file] = [join(makeFilms(), 'clip.mp4'), join(folder, 'chapters.mp4')];
    const words = [
      '-v',
      'error',
      '-i',
      film,
      '-i',
      many,
      '-map_chapters',
      '1',
      '-c',
      'copy',
      '-movflags',
      '+faststart',
    ];
    execFileSync('ffmpeg', [...words, file]);
    const ends: (string | null)[] = [];
    const run: MediaTools['run'] = (...given) => {
      const child = spawnChild(...given);
      void child.ended.then(({ signal }) => ends.push(signal));
      return child;
    };
    const tools = { ...aTools(folder, fixture.proxy.url), run };
    const { probe, ended, plain } = await probeWhole(file, 'shown', tools, new AbortController().signal);
    expect(ends).to.deep.equal(['SIGKILL', null]);
    // What the second one was asked has no chapters.
    expect([plain ?? false, ended.code, probe.video?.codec]).to.deep.equal([false, 0, 'h264']);
  });

  it('an MP4 with more tags than are read is not damaged, although ffprobe ends before it is killed', async () => {
    const film = join(makeFilms(), 'clip.mp4');
    let runs = 0;
    const run: MediaTools['run'] = (...given) => {
      if (runs++ > 0) return spawnChild(...given);
      for (let line = 0; line <= 20_000; line++) given[2].onLine?.('{');
      return { write: () => undefined, ended: Promise.resolve({ code: 0, signal: null, stderr: '' }) };
    };
    const tools = { ...aTools(folder, fixture.proxy.url), run };
    const { probe, ended, plain } = await probeWhole(film, 'shown', tools, new AbortController().signal);
    expect([plain ?? false, ended.code, probe.video?.codec, runs]).to.deep.equal([false, 0, 'h264', 2]);
  });

  it('leaves no process when the job is cancelled', async () => {
    const stop = new AbortController();
    const wanted = order(`${fixture.source.url}/rate/20000/clip.mp4`);
    const told = ({ stage }: { stage: string }) => stage === 'fetch' && stop.abort(new Error('enough'));
    const error: unknown = await produce(wanted, aTools(folder, fixture.proxy.url), told, stop.signal).catch(
      (reason) => reason,
    );
    expect(String(error)).to.equal('Error: enough');
    const left = execFileSync('sh', ['-c', 'grep -lF "$0" /proc/[0-9]*/environ 2>/dev/null || true', folder], {
      encoding: 'utf8',
    });
    expect(left).to.equal('');
  });
});

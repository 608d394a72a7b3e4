import { gzipSync } from 'node:zlib';

/** One answer of a hostile source: a path below the case's own, and what is served there. */
interface Served {
  readonly body: string | Buffer;
  readonly type?: string;
  readonly encoding?: 'gzip';
  /** Target of a redirect. */
  readonly location?: string;
}

export interface HostilePlaylist {
  readonly title: string;
  readonly position: string;
  /** First of the files: what a caller asks for. */
  readonly files: Readonly<Record<string, Served>>;
}

/** Addresses that no child may reach by itself, and a file that no job may deliver. */
export interface Forbidden {
  /** Host and port of a listener for TCP and UDP. */
  readonly listener: string;
  readonly file: string;
}

const hlsType = 'application/vnd.apple.mpegurl';
const dashType = 'application/dash+xml';

/** URIs by the name of what opens them in ffmpeg; `word` tells the connection of one case from another. */
const protocols: Readonly<Record<string, (at: Forbidden, word: string) => string>> = {
  httpproxy: ({ listener }, word) => `httpproxy://${listener}/x:80/${word}.ts`,
  HTTPPROXY: ({ listener }, word) => `HTTPPROXY://${listener}/x:80/${word}.ts`,
  'crypto+httpproxy': ({ listener }, word) => `crypto+httpproxy://${listener}/x:80/${word}.ts`,
  'crypto:httpproxy': ({ listener }, word) => `crypto:httpproxy://${listener}/x:80/${word}.ts`,
  'async:httpproxy': ({ listener }, word) => `async:httpproxy://${listener}/x:80/${word}.ts`,
  'http+httpproxy': ({ listener }, word) => `http+httpproxy://${listener}/x:80/${word}.ts`,
  tcp: ({ listener }, word) => `tcp://${listener}?${word}.ts`,
  'crypto+tcp': ({ listener }, word) => `crypto+tcp://${listener}?${word}.ts`,
  tls: ({ listener }, word) => `tls://${listener}?${word}.ts`,
  udp: ({ listener }, word) => `udp://${listener}?localaddr=127.0.0.1&${word}.ts`,
  ftp: ({ listener }, word) => `ftp://${listener}/${word}.ts`,
  rtmp: ({ listener }, word) => `rtmp://${listener}/${word}.ts`,
  http: ({ listener }, word) => `http://${listener}/${word}.ts`,
  https: ({ listener }, word) => `https://${listener}/${word}.ts`,
  file: ({ file }) => `file://${file}`,
  'crypto:file': ({ file }) => `crypto:file:${file}`,
  concat: ({ listener, file }) => `concat:httpproxy://${listener}/x:80/a.ts|${file}`,
  subfile: ({ file }) => `subfile,,start,0,end,0,,:${file}`,
  data: ({ listener }) =>
    `data:${hlsType};base64,${Buffer.from(`#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nhttpproxy://${listener}/x:80/d.ts\n#EXT-X-ENDLIST\n`).toString('base64')}`,
};
const few = ['httpproxy', 'crypto+httpproxy', 'tcp', 'file', 'http'];

const media = (lines: string) => `#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:9\n${lines}\n#EXT-X-ENDLIST\n`;
const master = (lines: string) => `#EXTM3U\n${lines}\n`;
const list = (body: string): Served => ({ body, type: hlsType });
const plain = media('#EXTINF:4,\n/good.ts');

/** Places of a URI in HLS. */
const hls: Readonly<Record<string, (uri: string) => HostilePlaylist['files']>> = {
  segment: (uri) => ({ 'a.m3u8': list(media(`#EXTINF:9,\n${uri}`)) }),
  'second segment': (uri) => ({ 'a.m3u8': list(media(`#EXTINF:1,\n/good.ts\n#EXTINF:9,\n${uri}`)) }),
  'byte range': (uri) => ({ 'a.m3u8': list(media(`#EXTINF:9,\n#EXT-X-BYTERANGE:500@100\n${uri}`)) }),
  key: (uri) => ({ 'a.m3u8': list(media(`#EXT-X-KEY:METHOD=AES-128,URI="${uri}"\n#EXTINF:9,\n/good.ts`)) }),
  'key of SAMPLE-AES': (uri) => ({
    'a.m3u8': list(media(`#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${uri}"\n#EXTINF:9,\n/good.ts`)),
  }),
  map: (uri) => ({ 'a.m3u8': list(media(`#EXT-X-MAP:URI="${uri}"\n#EXTINF:9,\n/good.ts`)) }),
  variant: (uri) => ({ 'a.m3u8': list(master(`#EXT-X-STREAM-INF:BANDWIDTH=9\n${uri}`)) }),
  'audio of EXT-X-MEDIA': (uri) => ({
    'a.m3u8': list(
      master(
        `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="${uri}"\n#EXT-X-STREAM-INF:BANDWIDTH=9,AUDIO="a"\nb.m3u8`,
      ),
    ),
    'b.m3u8': list(plain),
  }),
  'session key': (uri) => ({
    'a.m3u8': list(master(`#EXT-X-SESSION-KEY:METHOD=AES-128,URI="${uri}"\n#EXT-X-STREAM-INF:BANDWIDTH=9\nb.m3u8`)),
    'b.m3u8': list(plain),
  }),
  'nested variant': (uri) => ({
    'a.m3u8': list(master('#EXT-X-STREAM-INF:BANDWIDTH=9\nb.m3u8')),
    'b.m3u8': list(media(`#EXTINF:9,\n${uri}`)),
  }),
  'playlist instead of a segment': (uri) => ({
    'a.m3u8': list(media('#EXTINF:9,\nb.ts')),
    'b.ts': { body: media(`#EXTINF:9,\n${uri}`), type: 'video/mp2t' },
  }),
  'manifest instead of a segment': (uri) => ({
    'a.m3u8': list(media('#EXTINF:9,\nb.ts')),
    'b.ts': { body: manifest({ base: uri }), type: 'video/mp2t' },
  }),
  'redirect of a segment': (uri) => ({
    'a.m3u8': list(media('#EXTINF:9,\nb.ts')),
    'b.ts': { body: '', location: uri },
  }),
  'redirect of the playlist': (uri) => ({ 'a.m3u8': { body: '', location: uri } }),
};

interface Manifest {
  readonly base?: string;
  readonly media?: string;
  readonly initialization?: string;
  readonly inside?: string;
  readonly head?: string;
}

function manifest({
  base = '',
  media: segment = '/$Number$.m4s',
  initialization = '/init.m4s',
  inside,
  head = '',
}: Manifest) {
  const xml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  const template = `<SegmentTemplate media="${xml(segment)}" initialization="${xml(initialization)}" duration="3" timescale="1"/>`;
  return `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:xlink="http://www.w3.org/1999/xlink" type="static" mediaPresentationDuration="PT9S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011">${head}<Period><BaseURL>${xml(base)}</BaseURL><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">${inside ?? template}</Representation></AdaptationSet></Period></MPD>`;
}

/** Places of a URI in DASH. */
const dash: Readonly<Record<string, (uri: string) => string>> = {
  BaseURL: (uri) => manifest({ base: `${uri}/` }),
  'BaseURL of a single file': (uri) => manifest({ base: uri, inside: '' }),
  initialization: (initialization) => manifest({ initialization }),
  'media of SegmentTemplate': (uri) => manifest({ media: uri }),
  SegmentURL: (uri) =>
    manifest({
      inside: `<SegmentList duration="3"><SegmentURL media="${uri.replaceAll('&', '&amp;')}"/></SegmentList>`,
    }),
  xlink: (uri) => manifest({ head: `<Period xlink:href="${uri.replaceAll('&', '&amp;')}" xlink:actuate="onLoad"/>` }),
  Location: (uri) => manifest({ head: `<Location>${uri.replaceAll('&', '&amp;')}</Location>` }),
};

/** Ways to write the first file of a case. */
const writings: Readonly<Record<string, (served: Served) => Served>> = {
  'with a byte order mark': (served) => ({ ...served, body: `\ufeff${served.body}` }),
  'in UTF-16 LE': (served) => ({ ...served, body: Buffer.from(`\ufeff${served.body}`, 'utf16le') }),
  'in UTF-16 BE': (served) => ({ ...served, body: Buffer.from(`\ufeff${served.body}`, 'utf16le').swap16() }),
  'as gzip': (served) => ({ ...served, body: gzipSync(served.body), encoding: 'gzip' }),
  'of 10 MB': (served) => ({ ...served, body: padded(String(served.body)) }),
  'with CRLF and blanks': (served) => ({ ...served, body: String(served.body).replaceAll('\n', ' \r\n\r\n') }),
};

/** Puts 10 MB of comments behind the first line of a playlist, or of blanks into a manifest. */
function padded(text: string): string {
  const [first = '', ...rest] = text.split('\n');
  if (rest.length === 0) return text.replace('<Period>', `${' '.repeat(10_000_000)}<Period>`);
  return [first, ...Array.from({ length: 100_000 }, () => `#${'c'.repeat(99)}`), ...rest].join('\n');
}

/** Files that are lists of other URIs, though name and type say that they are films. */
const disguised: Readonly<Record<string, (uri: string) => string>> = {
  'an HLS playlist': (uri) => media(`#EXTINF:9,\n${uri}`),
  'an HLS playlist behind an ID3 tag': (uri) =>
    `ID3\u0003\u0000\u0000\u0000\u0000\u0000\u000a${'\0'.repeat(10)}${media(`#EXTINF:9,\n${uri}`)}`,
  'a DASH manifest': (uri) => manifest({ base: `${uri}/` }),
  'a concat list': (uri) => `ffconcat version 1.0\nfile '${uri}'\n`,
  'a session description': () =>
    'v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 9 RTP/AVP 96\na=rtpmap:96 H264/90000\n',
  'an ASX list': (uri) => `<asx version="3.0"><entry><ref href="${uri}"/></entry></asx>`,
  'a PLS list': (uri) => `[playlist]\nFile1=${uri}\nNumberOfEntries=1\n`,
};

/** Returns the corpus: each protocol at each place, the important ones in each writing, and lists that look like films. */
export function makeHostilePlaylists(at: Forbidden): HostilePlaylist[] {
  const cases: HostilePlaylist[] = [];
  const add = (position: string, how: string, name: string, make: (uri: string) => HostilePlaylist['files']) => {
    const word = `case${cases.length}`;
    const uri = protocols[name]?.(at, word) ?? '';
    cases.push({ title: `${name} as ${position}${how && ` ${how}`}`, position, files: make(uri) });
  };
  for (const [position, make] of Object.entries(hls)) {
    const all = position === 'segment' || position === 'key' || position === 'map' || position === 'nested variant';
    for (const name of all ? Object.keys(protocols) : few) add(position, '', name, make);
    if (/redirect/.test(position)) continue;
    for (const [how, write] of Object.entries(writings)) {
      // 10 MB cost as much time as ten others.
      if (how === 'of 10 MB' && !all) continue;
      add(position, how, 'httpproxy', (uri) => rewriteFirst(make(uri), write));
    }
  }
  for (const [position, make] of Object.entries(dash)) {
    const files = (uri: string) => ({ 'a.mpd': { body: make(uri), type: dashType } });
    for (const name of few) add(`DASH ${position}`, '', name, files);
    if (position !== 'BaseURL') continue;
    for (const [how, write] of Object.entries(writings))
      add(`DASH ${position}`, how, 'httpproxy', (uri) => rewriteFirst(files(uri), write));
  }
  for (const [what, write] of Object.entries(disguised)) {
    for (const name of ['httpproxy', 'tcp', 'file']) {
      add(`${what} called a film`, '', name, (uri) => ({ 'a.mp4': { body: write(uri), type: 'video/mp4' } }));
    }
  }
  for (const name of Object.keys(protocols)) {
    add('redirect of a film', '', name, (uri) => ({ 'a.mp4': { body: '', location: uri } }));
  }
  return cases;
}

function rewriteFirst(files: HostilePlaylist['files'], write: (served: Served) => Served): HostilePlaylist['files'] {
  return Object.fromEntries(Object.entries(files).map(([name, served], n) => [name, n === 0 ? write(served) : served]));
}

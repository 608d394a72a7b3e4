"""Fuzzes what the driver of yt-dlp makes of hostile pages, playlists, manifests and errors.

Usage: fuzz-driver.py MEDIA PACKAGES SECONDS SEED PREFIX [INPUT]
MEDIA is the folder of driver.py, PACKAGES one with yt-dlp besides. With atheris it is guided by coverage, and libFuzzer writes what
fails to a file that begins with PREFIX; without, random bytes take its place. INPUT is sent alone. The last line is the number of executions.
"""
import json
import math
import os
import random
import struct
import sys
import time

media, packages, seconds, seed, prefix, *inputs = sys.argv[1:]
sys.path[:0] = [media, packages]
try:
    import atheris
except ImportError:
    atheris = None

if atheris:
    with atheris.instrument_imports(include=['bounds', 'clock', 'driver', 'segments', 'lengths', 'live', 'manifests', 'streams']):
        import driver
else:
    import driver
import clock  # noqa: E402 - the driver has added its folder
import lengths  # noqa: E402
import segments  # noqa: E402
import live  # noqa: E402
import manifests  # noqa: E402
import streams  # noqa: E402
import yt_dlp  # noqa: E402
from yt_dlp.compat import compat_etree_fromstring  # noqa: E402
from yt_dlp.utils import ExtractorError  # noqa: E402

BASE = 'https://example.com/a/x.m3u8'
WORDS = ['', 'http', 'https://example.com/f.mp4', 'httpproxy://10.0.0.5/a', 'file:///etc/passwd', 'm3u8', 'm3u8_native',
         'http_dash_segments', 'none', 'avc1', 'is_live', 'nan', '1e999', '\ud800', '\0', 'x' * 20_000, 'fragments']
LINES = ['#EXTM3U', '#EXTINF:4.5,', '#EXTINF:999999999999,', '#EXTINF:nan', '#EXT-X-MEDIA-SEQUENCE:7', '#EXT-X-MEDIA-SEQUENCE:x',
         '#EXT-X-TARGETDURATION:1e9', '#EXT-X-KEY:METHOD=AES-128,URI="file:///k",IV=0x1', '#EXT-X-KEY:METHOD=NONE',
         '#EXT-X-MAP:URI="httpproxy://a/i",BYTERANGE="5@0"', '#EXT-X-BYTERANGE:5@9', '#EXT-X-BYTERANGE:x', '#EXT-X-ENDLIST',
         '#EXT-X-DISCONTINUITY', '#EXT-X-STREAM-INF:BANDWIDTH=1', 'a.ts', 'https://b.example/b.ts', 'file:///c', '\ufeff#EXTM3U', '#ANVATO-SEGMENT-INFO:type=ad']
XML = ['<MPD>', '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z">', '</MPD>',
       '<Period start="PT0S">', '<Period duration="PT9H">', '</Period>', '<AdaptationSet mimeType="video/mp4">', '</AdaptationSet>',
       '<SegmentTemplate duration="2" timescale="1" media="$Number$.m4s" initialization="i.mp4" startNumber="1"/>',
       '<SegmentTemplate duration="1e-300" media="$Number%09999d$"/>', '<SegmentTemplate duration="x" timescale="0"/>',
       '<Representation id="1" bandwidth="9">', '</Representation>', '<BaseURL>file:///</BaseURL>', '<SegmentTimeline><S d="0" r="9"/></SegmentTimeline>',
       '<MPD mediaPresentationDuration="PT9S">', '<SegmentTimeline><S t="0" d="2" r="-1"/></SegmentTimeline>', '<Period start="PT3S">',
       '<SegmentTemplate media="$Time$" presentationTimeOffset="x">', '<SegmentList><SegmentURL mediaRange="0-9"/></SegmentList>']

BOXES = [bytes([0, 0, 0, size]) + kind for size in (0, 1, 8, 60, 200)
         for kind in (b'moov', b'trak', b'tkhd', b'mdia', b'mdhd', b'minf', b'stbl', b'stsd', b'mvex', b'trex', b'moof', b'traf', b'tfhd', b'tfdt', b'sidx')]


class Given:
    """Values that follow from bytes; the same bytes give the same values."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def take(self, count):
        piece = self.data[self.at:self.at + count]
        self.at += count
        return piece

    def pick(self, some):
        return some[self.byte() % len(some)]

    def text(self):
        return self.pick(WORDS) if self.byte() % 2 else self.take(self.byte()).decode('utf-8', 'surrogateescape')

    def number(self):
        kind = self.byte() % 4
        if kind == 0:
            return self.byte()
        if kind == 1:
            return int.from_bytes(self.take(8).ljust(8, b'\0'), 'little', signed=True)
        return struct.unpack('<d', self.take(8).ljust(8, b'\0'))[0] if kind == 2 else 10 ** (self.byte() * 40)

    def value(self, depth=0):
        kind = self.byte() % 8
        if kind < 3:
            return self.text()
        if kind < 5:
            return self.number()
        if kind == 5 or depth > 3:
            return self.pick([None, True, False, [], {}])
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.byte() % 5)]
        return self.members([self.text() for _ in range(self.byte() % 4)], depth)

    def members(self, names, depth=0):
        return {name: self.value(depth + 1) for name in names if self.byte() % 3}

    def lines(self, known):
        return '\n'.join(self.pick(known) if self.byte() % 4 else self.text() for _ in range(self.byte() % 40))


class Downloader(driver.yt_dlp.YoutubeDL):
    """Finds what a test says, and reaches nothing."""

    info, page = {}, b''

    def extract_info(self, url, download=True, **_):
        return self.info

    def urlopen(self, req):
        driver.bounds.judge_url(yt_dlp.utils.sanitize_url(req if isinstance(req, str) else req.url))
        return Answer(self.page)


class Answer:
    url = BASE

    def __init__(self, page):
        self.page = page

    def read(self, amount=None):
        return self.page[:amount]


def fuzz_page(given):
    """Sends a page through the whole of an inspection."""
    info = given.members(driver.PLAIN)
    if given.byte() % 8:
        info['formats'] = [{'url': given.text(), **given.members([*driver.OF_FORMAT, 'fragments', 'manifest_url'])} for _ in range(given.byte() % 4)]
    Downloader.info, Downloader.page = info, given.lines(LINES).encode('utf-8', 'replace')
    order = {'action': 'inspect', 'url': BASE, 'proxy': '', 'tools': '/', 'node': '/', 'folder': '/'}
    check(driver.answer_inspect(order))
    pieces = given.value()
    try:
        lengths.shorten({'fragments': pieces}, abs(given.byte()))
    except (AttributeError, TypeError, OverflowError, ValueError):
        pass  # yt-dlp makes fragments itself, and the driver tells of any failure.


def fuzz_playlist(given):
    after, length, text = given.byte() - 1, given.byte(), given.lines(LINES)
    try:
        cut = streams.cut_playlist(text, after, length)
    except ValueError:
        return  # A number that is none; the driver tells of it.
    assert math.isfinite(cut.seconds) and cut.seconds >= 0
    known = {line.strip() for line in text.splitlines()}
    assert all(line in known or line.startswith('#EXT-X-MEDIA-SEQUENCE:') for line in cut.text.splitlines()), cut.text
    tell_of(lambda: streams.Fragments(ydl, {'url': BASE}, segments.lay_out(cut.text)[0], BASE).found)


def fuzz_manifest(given):
    def read():
        doc = compat_etree_fromstring(given.lines(XML).encode('utf-8', 'replace'))
        live.number_segments(doc, given.number())
        ydl.get_info_extractor('Generic')._parse_mpd_formats(doc, mpd_base_url='https://example.com/a', mpd_url=BASE)

    tell_of(read)


def fuzz_fragment(given):
    placing = clock.Clock()
    for _ in range(given.byte() % 5):
        content = b''.join(given.pick(BOXES) + given.take(given.byte() % 40) for _ in range(given.byte() % 20))
        tell_of(lambda: placing.place(content, length=given.byte()))


def fuzz_error(given):
    error = None
    for _ in range(given.byte() % 20):
        cause = error if given.byte() % 2 else ValueError(given.text())
        error = ExtractorError(given.text(), cause=cause, expected=given.byte() % 2 == 0)
    check(driver.describe(error or OSError(given.text()), given.pick(['inspect', 'fetch'])))


def tell_of(work):
    """Runs what may fail, as the driver does, and checks how that is told."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - the driver tells of every failure
        check(driver.describe(error, 'fetch'))


def check(said):
    """An answer is one line of JSON that every parser reads."""
    assert ('info' in said) != ('failed' in said), said
    line = json.dumps(said, allow_nan=False)
    assert '\n' not in line
    if 'failed' in said:
        assert len(said['failed']['message']) <= 2000 and all(len(cause) <= 500 for cause in said['failed']['causes'])


TARGETS = [fuzz_page, fuzz_page, fuzz_playlist, fuzz_manifest, fuzz_fragment, fuzz_error]
executions = 0


def run(data):
    global executions
    executions += 1
    given = Given(data)
    given.pick(TARGETS)(given)


def run_random():
    """Takes the place of libFuzzer: bytes from the seed, until the time is over."""
    numbers, end = random.Random(int(seed)), time.monotonic() + float(seconds)
    while time.monotonic() < end:
        data = numbers.randbytes(numbers.randrange(2000))
        try:
            run(data)
        except BaseException:
            path = f'{prefix}{seed}-{executions}'
            with open(path, 'wb') as file:
                file.write(data)
            print(f'FUZZ_REPEAT={path} repeats it', flush=True)
            raise


os.makedirs(os.path.dirname(prefix), exist_ok=True)
driver.bounds.seal_urls()
manifests.patch_parser()
driver.probes.ask = lambda command, order, given: {}
ydl = Downloader({'quiet': True, 'no_warnings': True}, auto_init=False)
# One for all: making it takes longer than anything that is fuzzed.
driver.Downloader = lambda options: ydl
if inputs:
    with open(inputs[0], 'rb') as file:
        run(file.read())
elif atheris:
    limits = [f'-max_total_time={math.ceil(float(seconds))}', f'-seed={seed}', '-timeout=20', '-rss_limit_mb=2048', '-max_len=4096']
    atheris.Setup([sys.argv[0], *limits, f'-artifact_prefix={prefix}', '-print_final_stats=1'], run)
    atheris.Fuzz()
else:
    run_random()
    print(executions)

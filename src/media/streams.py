"""Fetches media so that ffmpeg never reads a playlist: HLS and DASH are read here, and every URL must be http or https.

ffmpeg connects to whatever a playlist names, `httpproxy://` and `tcp://` included, past the egress proxy. It gets single files only."""
import math
import os
import re
import time
from urllib.parse import urljoin

import yt_dlp.downloader.hls
from yt_dlp.downloader import PROTOCOL_MAP
from yt_dlp.downloader.dash import DashSegmentsFD
from yt_dlp.downloader.external import FFmpegFD
from yt_dlp.downloader.hls import HlsFD
from yt_dlp.downloader.http import HttpFD
from yt_dlp.networking import Request
from yt_dlp.postprocessor.ffmpeg import FFmpegPostProcessor
from yt_dlp.utils import ExtractorError, determine_protocol

import hooks
import live
import ranges
from clock import Clock
from segments import ENDLIST, MAP, Listed, align, cut_playlist, lay_out, skips

HLS = ('m3u8', 'm3u8_native')
TRANSPORT = ('ts', 'mts', 'm2ts')
SAMPLE_BYTES, SAMPLE_SECONDS = 2**21, 10


class NoFFmpeg(FFmpegFD):
    """Stands where yt-dlp would hand a playlist on to ffmpeg."""

    @classmethod
    def available(cls, path=None):
        return False

    def real_download(self, filename, info_dict):
        raise ExtractorError('This kind of stream is not supported', expected=True)


hooks.put(yt_dlp.downloader.hls, FFmpegFD=NoFFmpeg)


def is_web(form):
    """Returns True for a format all of whose own URLs are http or https."""
    urls = [form.get(name) for name in ('url', 'manifest_url', 'fragment_base_url')]
    return all(re.match(r'(?i)https?://', url) for url in urls if url)


def headers_of(info):
    return info.get('http_headers') or {}


def is_fragmented(info):
    return determine_protocol(info) not in ('http', 'https')


def is_hls(info):
    return determine_protocol(info) in HLS


def may_be_mp4(info):
    return not is_fragmented(info) and info['ext'] in ('mp4', 'm4a', 'm4v', 'mov', 'unknown_video')


def container_of(info, probed):
    """Returns the container into which ffmpeg cuts a file."""
    return info['ext'] if info['ext'] != 'unknown_video' else 'mp4' if 'mp4' in (probed.get('format') or {}).get('format_name', '') else 'mkv'


def open_downloader(ydl, info, seconds, beginning):
    """Returns the downloader of a format, which fetches only the first seconds unless they are None; of a live one, from a beginning on."""
    protocol = info['protocol'] = determine_protocol(info)
    if protocol in HLS:
        return HlsStream(ydl, seconds, beginning)
    if protocol in ('http', 'https'):
        if seconds is None:
            return HttpFD(ydl, ydl.params)
        # ffmpeg writes an Ogg in which each picture has the time of the end of the one before.
        info.update(section_start=0, section_end=seconds, ext='mkv' if info['ext'] == 'ogv' else info['ext'])
        # ffmpeg would write 256 KiB at a time: a slow radio would seem to send nothing for a minute. It exits with 0 when a
        # source breaks off, and tells that only on standard error, which trawl reads.
        told = ['-flush_packets', '1', '-loglevel', 'warning']
        if info['ext'] in TRANSPORT and info.get('filesize'):
            # ffmpeg would join what is before and behind a picture that is held. A part that ends early for it, where the clock leaps, is not taken.
            told += ['-dts_delta_threshold', '100000']
        info['downloader_options'] = {**(info.get('downloader_options') or {}), 'ffmpeg_args_out': told}
        # yt-dlp would start ffmpeg once more, only to learn whether it is older than version 1.
        FFmpegPostProcessor._version_cache[os.path.join(ydl.params['ffmpeg_location'], 'ffmpeg')] = 'new'
        return FFmpegFD(ydl, ydl.params)
    if protocol == 'http_dash_segments' and info.get('is_live'):
        return live.LiveDash(ydl, seconds, beginning)
    if protocol == 'http_dash_segments' and isinstance(info.get('fragments'), list):
        return DashStream(ydl, ydl.params)
    found = PROTOCOL_MAP.get(protocol)
    if found is None or issubclass(found, FFmpegFD):
        return NoFFmpeg(ydl, ydl.params)
    return found(ydl, ydl.params)


class DashStream(DashSegmentsFD):
    """Fetches the fragments of a DASH stream that has ended, on one clock."""

    def download_and_append_fragments(self, ctx, fragments, info_dict, **more):
        clock, listed = Clock(), info_dict['fragments']
        place = lambda content, index: clock.place(media_of(clock, content, index), shift=listed[index - 1].get('shift'))
        return super().download_and_append_fragments(ctx, fragments, info_dict, pack_func=place, **more)


class HlsStream(HlsFD):
    """Fetches the first seconds of an HLS stream, or all of it; reads the playlist of a live one again and again."""

    def __init__(self, ydl, seconds, beginning=None):
        super().__init__(ydl, ydl.params)
        self.seconds, self.beginning = seconds, beginning
        self.listed = 0  # seconds that it must last
        self.lasted = None  # seconds of a live stream that ended early
        self.anew = {}  # fragments behind a discontinuity, with the length of the one before

    def download_and_append_fragments(self, ctx, fragments, info_dict, **more):
        clock = Clock()
        place = lambda content, index: clock.place(media_of(clock, content, index), length=self.anew.get(index))
        return super().download_and_append_fragments(ctx, fragments, info_dict, **{'pack_func': place, **more})

    def real_download(self, filename, info_dict):
        text, url = self.read(info_dict)
        if info_dict.get('is_live') and ENDLIST not in text:
            return live.download(self, filename, info_dict)
        if self.beginning is not None:
            self.beginning.leave()
        if not skips(text, info_dict):
            whole = cut_playlist(text, -1, math.inf)
            self.refuse_endless(text, whole, info_dict.get('duration'))
            self.listed = max(self.listed, whole.seconds)
        if self.seconds is not None and not skips(text, info_dict):
            cut = cut_playlist(text, -1, self.seconds + 1)
            text, self.lasted = cut.text, cut.seconds if info_dict.get('is_live') else None
        if not skips(text, info_dict):
            text, anew, fragments = lay_out(text)
            self.anew = anew
            if self.beginning is not None:
                self.anew, self.beginning.starts = align(anew, fragments, self.beginning.starts)
        return super().real_download(filename, {**info_dict, 'url': url, 'hls_media_playlist_data': text, 'is_live': False})

    def decrypter(self, info_dict):
        decrypt = super().decrypter(info_dict)
        return lambda fragment, content: decrypt(fragment, ranges.in_range(content, fragment))

    def refuse_endless(self, text, whole, told):
        """Raises for a list that has no end, and ends long before another one of the same medium, which has: it would go on."""
        is_short = isinstance(told, Listed) and whole.seconds < min(told - max(2, told / 20), self.seconds or math.inf)
        if ENDLIST not in text and is_short:
            raise ExtractorError(f'fragment {whole.last + 1} not found: its list has no end', expected=True)

    def read(self, info):
        """Returns the playlist and its URL."""
        text, url = info.get('hls_media_playlist_data'), info['url']
        if not text:
            request = self._prepare_url(info, url)
            answer = live.read_again(self.ydl, request) if info.get('is_live') else self.ydl.urlopen(request)
            text, url = answer.read().decode('utf-8', 'ignore'), answer.url
        text = text.removeprefix('\ufeff')
        if not self.can_download(text, {**info, 'is_live': False}):
            raise ExtractorError('This stream is DRM protected', expected=True)
        return text, url

    def record(self, info):
        """Yields the fragments of a live stream with their seconds, from its newest one on, until they last long enough."""
        last, length, known_map, count = None, 0.0, None, 0
        while length < self.beginning.limit(self.seconds):
            begun = time.monotonic()
            text, url = self.read({**info, 'hls_media_playlist_data': None})
            if last is None:
                last = self.beginning.agree(cut_playlist(text, -1, math.inf)) - 1
            part = cut_playlist(text, last, self.seconds - length)
            maps = [line for line in part.text.splitlines() if line.startswith(MAP)]
            if part.last > last:
                text_of_part, anew, lengths = lay_out(part.text, known_map)
                self.anew.update({count + number: seconds for number, seconds in anew.items()})
                listed = Fragments(self.ydl, info, text_of_part, url).found
                for number, fragment in enumerate(listed, 1):
                    yield {**fragment, 'frag_index': count + number}, lengths.get(number, 0.0)
                count, length = count + len(listed), length + part.seconds
                known_map = maps[-1] if maps else known_map
            if ENDLIST in text:
                self.lasted = length
                return
            found, last = part.last > last, max(last, part.last)
            if length < self.seconds:
                live.wait_for_next(begun, part.target, found)


class Fragments(HlsFD):
    """Reads a media playlist into the fragments that yt-dlp would fetch."""

    def __init__(self, ydl, info, text, url):
        super().__init__(ydl, ydl.params)
        self.found = []
        self.real_download('unused', {**info, 'url': url, 'hls_media_playlist_data': text, 'is_live': False})

    def _prepare_and_start_frag_download(self, ctx, info_dict):
        ctx['fragment_index'] = 0

    def download_and_append_fragments(self, ctx, fragments, info_dict, **_):
        self.found = fragments
        return True


def media_of(clock, content, index):
    if clock.is_missing(content):
        raise ExtractorError(f'fragment {index} not found: its server answers with a page, or with a part of it', expected=True)
    return content


def sample(ydl, info):
    """Returns the first bytes of a stream of fragments, decrypted, and the length of the stream in seconds or None."""
    info['protocol'] = determine_protocol(info)
    if info['protocol'] in HLS:
        stream = HlsStream(ydl, None)
        text, url = stream.read(info)
        length = cut_playlist(text, -1, math.inf).seconds if ENDLIST in text else None
        first = Fragments(ydl, info, cut_playlist(text, -1, 0.001).text, url).found
    elif info['protocol'] == 'http_dash_segments' and isinstance(info.get('fragments'), list):
        stream, length = DashSegmentsFD(ydl, ydl.params), None
        base = info.get('fragment_base_url') or ''
        first = [{'url': each.get('url') or urljoin(base, each['path'])} for each in info['fragments'][:2]]
    else:
        return b'', None
    decrypt = stream.decrypter(info)
    return b''.join(decrypt(fragment, beginning_of(ydl, info, fragment)) for fragment in first), length


def beginning_of(ydl, info, fragment):
    span = fragment.get('byte_range')
    wanted = {'Range': f'bytes={span["start"]}-{span["end"] - 1}'} if span else {}
    answer = ydl.urlopen(Request(fragment['url'], headers={**(info.get('http_headers') or {}), **wanted}))
    read, until = bytearray(), time.monotonic() + SAMPLE_SECONDS
    # A slow source is worth waiting for, but not here.
    while len(read) < SAMPLE_BYTES and time.monotonic() < until and (more := answer.read(2**12)):
        read += more
    # AES decrypts whole blocks only.
    return bytes(read[:len(read) // 16 * 16] if (fragment.get('decrypt_info') or {}).get('METHOD') == 'AES-128' else read)

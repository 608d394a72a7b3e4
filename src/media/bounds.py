"""Makes yt-dlp mistrust what it is sent: how much of a page it reads and hands on, which URLs it follows, what it takes for an order of its own,
and which descriptions it bears."""
import functools
import math
import re
import secrets
import sys
import zlib

import yt_dlp
import yt_dlp.networking._urllib as transport
import yt_dlp.utils
from yt_dlp.networking.exceptions import RequestError

import hooks

PAGE_BYTES = 64 * 2**20
MAX_NUMBER = 2**63
SMUGGLED = '#__youtubedl_smuggle'
# trawl reads none of these, and yt-dlp fails on one that has not the shape it expects.
UNREAD = set('chapters subtitles automatic_captions artist artists album_artist album_artists composer composers creator creators '
             'genre genres'.split())
# Types of what yt-dlp finds out by itself, or does without, but fails on when it has another type.
TYPES = {**dict.fromkeys('ext vcodec acodec protocol dynamic_range manifest_url fragment_base_url cookies'.split(), str),
         'preference': (int, float), 'http_headers': dict}
WHOLE_URL = re.compile(r'//|[^/:]+:')
WEB_URL = re.compile(r'(?i)https?://[^/?#\\@\s]')


class TooLarge(RequestError):
    """More was sent than the limits allow."""


class UnsupportedUrl(RequestError):
    """Neither http nor https, or without a host right after two slashes."""


class TolerantDownloader(yt_dlp.YoutubeDL):
    """Fails no medium because its page describes it wrongly."""

    def process_video_result(self, info_dict, download=True):
        formats = info_dict.get('formats')
        if formats is not None:
            formats = info_dict['formats'] = with_url(formats)
        for each in (info_dict, *(formats or ())):
            for name, value in list(each.items()):
                is_wrong = value is not None and not isinstance(value, TYPES.get(name, object))
                if name in UNREAD or is_wrong or isinstance(value, float) and not math.isfinite(value):
                    del each[name]
        return super().process_video_result(info_dict, download)

    def _sanitize_thumbnails(self, info_dict):
        if not isinstance(info_dict.get('thumbnail'), str):
            info_dict['thumbnail'] = None
        found = info_dict.get('thumbnails')
        info_dict['thumbnails'] = [
            {'url': each['url'], 'id': sortable(each.get('id')),
             **{name: yt_dlp.utils.int_or_none(each.get(name)) for name in ('preference', 'width', 'height')}}
            for each in with_url(found)
        ] if isinstance(found, list) else None
        super()._sanitize_thumbnails(info_dict)

    def _match_entry(self, *_, **__):
        """Takes every medium: trawl sets none of yt-dlp's filters, and these fail on a date that no calendar has."""


def with_url(found):
    """Returns those of a list that are objects with a whole URL."""
    return [each for each in found if isinstance(each, dict) and isinstance(each.get('url'), str) and WHOLE_URL.match(each['url'])]


def sortable(picture_id):
    """Returns the id of a picture as a text; yt-dlp sorts by it, and 9 comes before 10."""
    return f'{picture_id:020}' if isinstance(picture_id, int) else str(picture_id or '')


def judge_url(url):
    """Raises for a URL that may not be fetched, wherever it comes from."""
    if not WEB_URL.match(url):
        raise UnsupportedUrl('Unsupported URL: only http and https are fetched')


def judge_redirects():
    """Follows no redirect to a URL that may not be fetched."""
    handler = transport.RedirectHandler
    follow = handler.redirect_request

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        judge_url(newurl)
        return follow(self, req, fp, code, msg, headers, newurl)

    hooks.put(handler, redirect_request=redirect_request)


def seal_urls():
    """Takes orders inside URLs only from yt-dlp's own extractors, whatever a page or a redirect says."""
    kept, olds = {}, (yt_dlp.utils.smuggle_url, yt_dlp.utils.unsmuggle_url)

    def smuggle_url(url, data):
        bare, before = unsmuggle_url(url, {})
        token = secrets.token_hex(16)
        kept[token] = {**data, **before}
        return f'{bare}{SMUGGLED}={token}'

    def unsmuggle_url(url, default=None):
        bare, _, token = url.partition(SMUGGLED)
        return bare, dict(kept[token[1:]]) if token[1:] in kept else default

    for module in [module for name, module in sys.modules.items() if name.startswith('yt_dlp')]:
        for own in (smuggle_url, unsmuggle_url):
            if vars(module).get(own.__name__) in olds:
                setattr(module, own.__name__, own)


def bound_pages():
    """Bounds how much of a page is read and unpacked."""
    handler, adapter = transport.HTTPHandler, transport.UrllibResponseAdapter
    plain, judge = adapter.read, handler.http_response

    def unpack(bits, data):
        unpacker = zlib.decompressobj(bits)
        whole = unpacker.decompress(data, PAGE_BYTES)
        if unpacker.unconsumed_tail:
            raise TooLarge('a compressed page is too large')
        return whole

    def read_whole(read, amt=None):
        whole = read(PAGE_BYTES if amt is None else amt)
        if amt is None and read(1):
            raise TooLarge('a page is too large')
        return whole

    def http_response(self, req, resp):
        resp.read = functools.partial(read_whole, resp.read) if resp.headers.get('Content-encoding') else resp.read
        return judge(self, req, resp)

    gz = staticmethod(lambda data: data and unpack(zlib.MAX_WBITS | 16, data))
    deflate = staticmethod(lambda data: data and unpack(zlib.MAX_WBITS if data[:1] == b'x' else -zlib.MAX_WBITS, data))
    hooks.put(handler, gz=gz, deflate=deflate, http_response=http_response, https_response=http_response)
    hooks.put(adapter, read=lambda self, amt=None: read_whole(functools.partial(plain, self), amt))


def bounded(value, max_length=10_000):
    """Returns a text of at most that length, or a number that JSON has: no NaN, no infinity, and none with thousands of digits."""
    if isinstance(value, str):
        return value[:max_length]
    return value if isinstance(value, (int, float)) and abs(value) <= MAX_NUMBER else None

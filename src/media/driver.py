"""Runs yt-dlp for one URL: orders are JSON lines on standard input, answers are JSON lines on standard output.

The first is {action: inspect | download, url, folder, proxy, tools, node, plugins, cookies, limits}, which {info}
answers. `download` then reads which formats to fetch, [{id, name, seconds, video}], and answers {progress} lines and {done:
{seconds, broken, listed}}: the length of a live source that ended early, or that is broken because the file cannot hold the
rest; and of others the longest one that the lists of the formats tell.
Children of the inspector may also get `list` with {max_entries}, which {entries} answers: URLs of a playlist. Whatever
goes wrong ends as one {failed} line.
Importing this module starts nothing and reaches nothing."""
import functools
import gc
import io
import itertools
import json
import os
import pathlib
import re
import sys
import threading
import types

gc.set_threshold(50_000)  # importing makes many objects and hardly any garbage
import yt_dlp
import yt_dlp.utils
from yt_dlp.networking.exceptions import HTTPError
from yt_dlp.utils import ExtractorError, PagedList

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import addresses  # noqa: E402 - they lie beside this file, where Python does not look by itself
import bounds  # noqa: E402
import hooks  # noqa: E402
import manifests  # noqa: E402
import parts  # noqa: E402
import playlists  # noqa: E402
import probes  # noqa: E402
import ranges  # noqa: E402
import sites  # noqa: E402
import smooth  # noqa: E402
import streams  # noqa: E402
from bounds import bounded  # noqa: E402
from segments import Listed  # noqa: E402

PLAIN = ('id ext title width height channel channel_url uploader uploader_url is_live was_live live_status duration extractor '
         'thumbnail like_count view_count description upload_date webpage_url original_url direct release_timestamp').split()
OF_FORMAT = 'format_id ext vcodec acodec width height fps tbr abr filesize filesize_approx protocol preference language_preference'.split()
MAX_FORMATS = 1000
RESUMED = re.compile(r'bytes=[1-9]\d*-')
ABOUT_US = re.compile('generic information extractor|Requested format is not|No video formats found')


class Playlist(Exception):
    """The URL names more than one medium."""


class Downloader(bounds.TolerantDownloader):
    """Takes a playlist of exactly one entry for that entry, and refuses every other one before reading it."""

    def __init__(self, *args, **named):
        self.last_file = threading.local()  # each thread fetches one file after the other
        super().__init__(*args, **named)

    def add_default_info_extractors(self):
        """Adds what yt-dlp adds, but does not compare each name with all the others."""
        for ie in {ie.IE_NAME.lower(): ie for ie in yt_dlp.extractor.gen_extractor_classes() if ie._ENABLED}.values():
            self.add_info_extractor(ie)

    def urlopen(self, req):
        bounds.judge_url(yt_dlp.utils.sanitize_url(req if isinstance(req, str) else req.url))
        if not isinstance(req, str):
            # No page chooses the proxy.
            req.proxies.clear()
            req.headers.pop('Ytdl-Request-Proxy', None)
        answer = super().urlopen(req)
        self.last_length = answer.headers.get('Content-Length')
        return answer if isinstance(req, str) else self.same_file(req, answer)

    def same_file(self, req, answer):
        """Returns an answer that goes on with the file of the one before, or the whole one where a source has another file in its place."""
        is_resumed = answer.status == 206 and RESUMED.fullmatch(req.headers.get('Range') or '')
        marks = ranges.marks_of(answer.headers)
        url, known = getattr(self.last_file, 'seen', (None, None))
        if is_resumed and url == req.url and ranges.is_other_file(known, marks):
            answer.close()
            req.headers.pop('Range')
            return self.urlopen(req)
        if not is_resumed:
            self.last_file.seen = req.url, marks
        return answer

    def process_ie_result(self, ie_result, download=True, extra_info=None):
        if ie_result.get('_type') in ('playlist', 'multi_video', 'compat_list'):
            entries = ie_result.get('entries') or ()
            first = entries.getslice(0, 2) if isinstance(entries, PagedList) else list(itertools.islice(entries, 2))
            if len(first) != 1 or not isinstance(first[0], dict):
                raise Playlist
            own = {name: ie_result[name] for name in ('extractor', 'extractor_key', 'webpage_url') if ie_result.get(name)}
            ie_result, extra_info = first[0], {**own, **(extra_info or {})}
        return super().process_ie_result(ie_result, download, extra_info)


def options(order, warn):
    """Returns all options of yt-dlp. Everything else is off: configuration files, cache files, executed commands."""
    ignore = lambda text, **_: None
    return {
        'quiet': True, 'color': {'stdout': 'no_color', 'stderr': 'no_color'}, 'outtmpl': {'default': 'unused'},
        'logger': types.SimpleNamespace(debug=ignore, info=ignore, error=ignore, warning=warn), 'noprogress': True,
        'proxy': order['proxy'], 'socket_timeout': 15, 'retries': 3, 'fragment_retries': 3, 'extractor_retries': 2,
        'cachedir': False, 'default_search': 'error', 'noplaylist': True, 'allowed_extractors': ['default'], 'format': 'b*',
        'ignore_no_formats_error': True, 'skip_unavailable_fragments': False, 'concurrent_fragment_downloads': 8,
        'hls_prefer_native': True, 'fixup': 'never', 'updatetime': False, 'nopart': True, 'overwrites': True, 'continuedl': False,
        'cookiefile': io.StringIO(pathlib.Path(order['cookies']).read_text()) if order.get('cookies') else None,
        'ffmpeg_location': order['tools'], 'js_runtimes': {'node': {'path': order['node']}}, 'remote_components': [],
    }


def prepare(plugins):
    """Loads the operator's plugin packages and no others, and makes yt-dlp mistrust what it is sent."""
    yt_dlp.plugin_dirs.value = list(plugins)
    if plugins:
        yt_dlp.plugins.load_all_plugins()
    hooks.require(yt_dlp.YoutubeDL, 'urlopen', 'process_ie_result', 'process_video_result')
    bounds.seal_urls()
    bounds.judge_redirects()
    bounds.bound_pages()
    manifests.patch_parser()
    smooth.patch_heads()
    # Reading the certificates of all authorities takes 20 ms of CPU, more than half of a request: children of the inspector inherit them.
    common = yt_dlp.networking.common
    hooks.put(common, make_ssl_context=functools.cache(common.make_ssl_context))


def inspect(order):
    """Reads the page of a URL: yt-dlp's downloader and the whole info."""
    warnings = []  # a page without formats says why in a warning
    warn = lambda text, **_: None if ABOUT_US.search(text) or len(warnings) > 50 else warnings.append(text[:2000])
    downloader = Downloader(options(order, warn))
    info = downloader.extract_info(addresses.address_of(downloader, order['url']), download=False)
    if info.get('is_live'):
        # yt-dlp adds the time to it, in the zone of this machine.
        info['title'] = re.sub(r' [\d-]{10} [\d:]{5}$', '', info['title'])
    info['formats'] = [each for each in info.get('formats') or [info] if each.get('url') and streams.is_web(each)]
    if info.get('direct') and info['formats']:
        # Its page is the file.
        info['formats'][0].setdefault('filesize', yt_dlp.utils.int_or_none(getattr(downloader, 'last_length', None)))
    info['duration'] = info.get('duration') or next((Listed(each['manifest_seconds']) for each in info['formats'] if each.get('manifest_seconds')), None)
    if not info['formats'] and info.get('live_status') != 'is_upcoming':
        raise ExtractorError(warnings[-1] if warnings else 'No video formats found!', expected=bool(warnings))
    return downloader, info


def describe_info(downloader, info, order):
    """Returns the bounded part of the info that trawl reads; asks ffprobe what the page does not say."""
    formats = info['formats'][-MAX_FORMATS:]
    described = {name: bounded(info.get(name)) for name in PLAIN} | {'listed': isinstance(info.get('duration'), Listed)}
    described['formats'] = [{name: bounded(each.get(name)) for name in OF_FORMAT} for each in formats]
    knows = info.get('is_live') or info.get('duration') and any(each.get('height') or each.get('vcodec') == 'none' for each in formats)
    if formats and order['action'] == 'inspect' and not knows:
        chosen = {**info, **formats[-1]}
        described['probe'] = probes.probe(downloader, chosen, order)
        if info.get('direct') and ((described['probe'] or {}).get('is_invalid') or chosen.get('filesize') == 0):  # 416 for an empty file
            request = yt_dlp.networking.Request(chosen['url'], headers=streams.headers_of(chosen))
            described['unreadable'] = downloader.urlopen(request).read(16).decode('latin-1')
    return described


def describe(error, stage):
    """Returns an exception and those that caused it, as JSON."""
    chain, inner = [], error
    while isinstance(inner, BaseException) and inner not in chain and len(chain) < 12:
        chain.append(inner)
        inner = (getattr(inner, 'exc_info', None) or (0, 0))[1] or getattr(inner, 'cause', None) or inner.__cause__ or inner.__context__
    answers = [each for each in chain if isinstance(each, HTTPError)]
    expected = any(getattr(each, 'expected', False) for each in chain)
    return {'failed': {
        'class': [type(each).__name__ for each in chain], 'message': bounded(str(error), 2000), 'stage': stage,
        'http': answers[0].status if answers else None, 'expected': expected,
        'verdict': bounded(answers[0].response.headers.get('x-egress-verdict')) if answers else None,
        'causes': [bounded(str(each), 500) for each in chain[1:]]}}


def answer_inspect(order):
    """Returns the answer to an inspect or list order, failures included; the process was prepared before."""
    try:
        if order['action'] == 'list':
            # A URL of one medium in a playlist stands for the whole playlist here.
            downloader = Downloader({**options(order, lambda *_, **__: None), 'noplaylist': False})
            return {'entries': playlists.list_entries(downloader, order['url'], order['max_entries'])}
        return {'info': describe_info(*inspect(order), order)}
    except Exception as error:  # the caller gets every failure
        return describe(error, 'inspect')


def answer(said, lock=threading.Lock()):
    with lock:
        print(json.dumps(said), flush=True)


def main():
    order, stage = json.loads(sys.stdin.readline()), 'inspect'
    prepare(order['plugins'])
    try:
        sites.compile_lazily(yt_dlp.extractor.gen_extractor_classes())
        downloader, info = inspect(order)
        if order['action'] == 'download':
            probes.mark_silent(downloader, info, order)
        answer({'info': describe_info(downloader, info, order)})
        if order['action'] == 'download':
            stage, wanted = 'fetch', json.loads(sys.stdin.readline() or '[]')
            parts.fetch(downloader, info, wanted, order, answer)
    except Exception as error:  # the caller gets every failure
        answer(describe(error, stage))


if __name__ == '__main__':
    main()
    os._exit(0)  # the answer is written; tearing down a process of this size takes a while

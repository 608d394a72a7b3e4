"""Fetches the chosen formats of a medium into files of the given names."""
import concurrent.futures
import os
import pathlib
import time

from yt_dlp.networking.exceptions import HTTPError, TransportError
from yt_dlp.utils import DownloadError, ExtractorError

import bounds
import lengths
import live
import manifests
import probes
import streams


def fetch(downloader, info, wanted, order, answer):
    """Fetches formats into files of the given names, one after the other; those of a live source all at once, because its past is gone."""
    pool = concurrent.futures.ThreadPoolExecutor(max(1, len(wanted)) if info.get('is_live') else 1)
    beginning = live.Beginning(len(wanted))
    meters = [meter(number, order['limits']['file_bytes'], answer) for number in range(len(wanted))]
    running = [pool.submit(fetch_part, downloader, info, part, order, beginning, hook) for part, hook in zip(wanted, meters)]
    # The first failure ends the process, and with it the other parts.
    fetchers = [each.result() for each in concurrent.futures.as_completed(running)]
    listed = [each.listed for each in fetchers]
    answer({'done': {**beginning.end([getattr(each, 'lasted', None) for each in fetchers]), 'listed': max(listed) if all(listed) else None}})


def fetch_part(downloader, info, part, order, beginning, hook):
    """Fetches a format, or one that its list of HLS names in its place (RFC 8216, 4.3.4.2) where its source does not give it; the next smaller one
    where its own list does not exist."""
    wanted = {each.get('format_id'): each for each in info['formats']}[part['id']]
    twins, smaller = ([], []) if info.get('is_live') else (find(wanted, info['formats']) for find in (manifests.twins_of, manifests.smaller_than))
    form = wanted
    while True:
        try:
            return fetch_format(downloader, info, form, part, order, beginning, hook)
        # Where several fragments arrive at once, a missing one may end as a write to a file that is closed, which is a ValueError.
        except (ExtractorError, DownloadError, HTTPError, TransportError, ValueError) as error:
            left = twins or (smaller if isinstance(error, HTTPError) and error.status in (404, 410) else [])
            if not left:
                raise
            form = left.pop(0)
            for begun in pathlib.Path(order['folder']).glob(f'{part["name"]}*'):
                begun.unlink()


def fetch_format(downloader, info, form, part, order, beginning, hook):
    both = {**info, **form}
    chosen = {**{name: both[name] for name in both.keys() - {'formats', 'requested_formats'}}, 'is_shown': part['video']}
    told = lengths.told_seconds(info, chosen)
    seconds = lengths.shorten(chosen, part['seconds']) if part.get('seconds') is not None else None
    if seconds is not None and streams.may_be_mp4(chosen):
        # The turn of a picture is lost in all but an MP4.
        chosen['ext'] = streams.container_of(chosen, probes.probe(downloader, chosen, order) or {})
        seconds = None if chosen.get('is_edited') else seconds
    fetcher = streams.open_downloader(downloader, chosen, seconds, beginning)
    fetcher.listed = told
    fetcher.add_progress_hook(hook)
    if not fetcher.download(os.path.join(order['folder'], part['name']), chosen)[0]:
        raise ExtractorError('The downloader gave up', expected=True)
    return fetcher


def meter(number, max_bytes, answer):
    """Returns a hook of a downloader that tells its progress, and ends one of too many bytes."""
    last = 0.0

    def hook(status):
        nonlocal last
        done, total = status.get('downloaded_bytes') or 0, status.get('total_bytes') or 0
        if max(done, total) > max_bytes:
            raise bounds.TooLarge('the file is too large')
        if time.monotonic() - last > 0.25:
            last = time.monotonic()
            answer({'progress': {'part': number, 'bytes': done, 'total': total or status.get('total_bytes_estimate')}})

    return hook

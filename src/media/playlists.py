"""Lists the entries of a playlist by their URLs, without reading the pages that these lead to."""
import itertools
import json

import addresses
import bounds
from yt_dlp.utils import ExtractorError, PagedList

MAX_HOPS = 5
MAX_DEPTH = 3
MAX_URL = 8192
MAX_CHARACTERS = 900_000  # the answer is one line, which its reader takes up to 1 MiB


def list_entries(downloader, url, most):
    """Returns the URLs of the first entries, each once; the URL itself when it leads to one medium."""
    result = follow(downloader, addresses.address_of(downloader, url))
    if 'entries' not in result:
        return [url]
    found, size = {}, 0
    for each in flatten(result, most, MAX_DEPTH):
        size += len(json.dumps(each)) + 2
        if size > MAX_CHARACTERS or len(found) == most:
            break
        found[each] = None
    return list(found)


def follow(downloader, url):
    """Reads a page, and the page that it stands for when it only leads there."""
    key = None
    for _ in range(MAX_HOPS):
        result = downloader.extract_info(url, download=False, ie_key=key, process=False)
        if result.get('_type') not in ('url', 'url_transparent'):
            return result
        url, key = result['url'], result.get('ie_key')
    raise ExtractorError('The page leads from one page to the next without end', expected=True)


def flatten(result, most, depth):
    """Yields the URL of each entry that has one, of playlists inside the playlist too."""
    entries = result.get('entries') or ()
    for entry in entries.getslice(0, most) if isinstance(entries, PagedList) else itertools.islice(entries, most):
        if isinstance(entry, dict) and 'entries' in entry and depth:
            yield from flatten(entry, most, depth - 1)
        elif isinstance(entry, dict):
            url = next((each for each in urls_of(entry, result) if is_web(each)), None)
            if url is not None:
                yield url.partition(bounds.SMUGGLED)[0]  # its orders are known to this process alone


def urls_of(entry, playlist):
    """Yields what may name an entry, the best first: media in the page of the playlist have no page of their own."""
    own = entry.get('webpage_url') or entry.get('original_url')
    if entry.get('_type') in ('url', 'url_transparent'):
        yield from (entry.get('url'), own)
    elif own != playlist.get('webpage_url'):
        yield own
    yield entry.get('url')
    for each in reversed(entry.get('formats') or []):
        yield from (each.get('manifest_url'), each.get('url'))


def is_web(url):
    return isinstance(url, str) and len(url) <= MAX_URL and bounds.WEB_URL.match(url) is not None

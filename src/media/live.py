"""Records live streams: their playlists and manifests are read again and again, and name their newest pieces."""
import math
import re
import threading
import time
from urllib.parse import urljoin

from yt_dlp.compat import compat_etree_fromstring
from yt_dlp.downloader.dash import DashSegmentsFD
from yt_dlp.networking.exceptions import HTTPError, TransportError
from yt_dlp.utils import ExtractorError, parse_duration, parse_iso8601

import manifests
from clock import PICTURES, SOUND, Changed, Clock, size_of

# Fragments are fetched one after the other: with more at once, yt-dlp would ask for all of them before it writes the first.
OPTIONS = {'concurrent_fragment_downloads': 1, 'skip_unavailable_fragments': True}
REREADS = 4
MIN_WAIT, MAX_WAIT = 0.5, 10
MAX_APART = 1  # fragments between the newest of two lists that count alike: a cache may give one of them late


class Beginning:
    """Lets the recordings of picture and sound begin together: a new piece may appear while one after the other reads its list."""

    def __init__(self, recordings):
        self.lock, self.manifests = threading.Lock(), {}
        self.newest, self.all_read = [], threading.Barrier(recordings)
        self.starts = ()  # seconds at which clocks of a stream that has ended begin anew
        self.broken = None  # seconds up to which one file can hold the stream, where it goes on otherwise

    def read(self, url, read):
        """Returns what the first of the recordings has read at a URL."""
        with self.lock:
            if url not in self.manifests:
                self.manifests[url] = read()
            return self.manifests[url]

    def leave(self):
        """Lets the other recordings begin by themselves: this one reads a stream that has ended."""
        self.all_read.abort()

    def limit(self, seconds):
        """Returns the seconds to record of those that are wanted."""
        return seconds if self.broken is None else min(seconds, self.broken)

    def break_off(self, seconds):
        """Has the other recordings end too."""
        with self.lock:
            self.broken = self.limit(seconds)

    def end(self, lasted):
        """Returns the answer to a fetch whose recordings lasted so long, None for those that did not end early."""
        seconds = min((each for each in [*lasted, self.broken] if each is not None), default=None)
        return {'seconds': seconds, 'broken': self.broken is not None}

    def agree(self, newest):
        """Returns the number of the piece to begin with: that of the newest piece in any of the lists, which are compared by their dates where
        all have them, else by their numbers; or the newest of the given list where lists count differently or have ended."""
        self.newest.append(newest)
        try:
            self.all_read.wait(MAX_WAIT)
        except threading.BrokenBarrierError:
            return newest.last
        if all(each.date is not None for each in self.newest):
            behind = round((max(each.date for each in self.newest) - newest.date) / (newest.length or 1))
            return newest.last + (behind if behind <= MAX_APART else 0)
        numbers = [each.last for each in self.newest]
        return max(numbers) if max(numbers) - min(numbers) <= MAX_APART else newest.last


class LiveDash(DashSegmentsFD):
    """Fetches the first seconds of a live DASH stream; reads its manifest again and again."""

    def __init__(self, ydl, seconds, beginning):
        super().__init__(ydl, ydl.params)
        self.seconds, self.beginning = seconds, beginning
        self.lasted = None  # seconds of a live stream that ended early
        self.anew = set()  # fragments behind another initialization
        self.lacking = None  # periods without a format of this kind

    def real_download(self, filename, info_dict):
        return download(self, filename, info_dict)

    def read(self, info, is_first):
        """Returns the fragments that the manifest lists now, each behind its initialization if there is one; whether more will come; and True for
        a newest period, or another new one, without a format of this kind."""
        request = self._prepare_url(info, info.get('manifest_url') or info['url'])

        def read_now():
            answer = read_again(self.ydl, request)
            return answer.read(), answer.url, time.time()

        text, url, now = self.beginning.read(request.url, read_now) if is_first else read_now()
        doc = compat_etree_fromstring(text)
        number_segments(doc, now)
        periods = self.ydl.get_info_extractor('Generic')._parse_mpd_periods(
            doc, mpd_base_url=url.partition('?')[0].rpartition('/')[0], mpd_url=url)
        forms = [manifests.most_similar(info, period['formats']) for period in periods if period['formats']]
        lacking, self.lacking = self.lacking, forms.count(None)
        has_lost = forms[-1:] == [None] or lacking is not None and self.lacking > lacking
        # What stands behind a period without a format of this kind would be heard or seen too early.
        kept = forms[:max(number for number, form in enumerate(forms) if form is None)] if has_lost else forms
        found = [{'url': each.get('url') or urljoin(form.get('fragment_base_url') or '', each['path']), 'seconds': each.get('duration')}
                 for form in kept if form is not None for each in form.get('fragments') or []]
        return found, doc.get('type') == 'dynamic', has_lost

    def record(self, info):
        """Yields the fragments with their seconds, from the newest one on, as they appear, until they last long enough."""
        seen, count, length, was_live, is_first, is_new = set(), 0, 0.0, False, True, False
        while length < self.beginning.limit(self.seconds):
            begun = time.monotonic()
            listed, is_live, has_lost = self.read(info, is_first)
            if has_lost and is_first:
                return self.beginning.break_off(0.0)
            if not seen:
                seen.update(leave_past(listed))
            # The manifest of a stream that has ended may list its whole past.
            known = max((number for number, each in enumerate(listed) if each['url'] in seen), default=-1)
            new = [each for number, each in enumerate(listed)
                   if each['url'] not in seen and (number > known or not each['seconds'])]
            for each in new:
                if length < self.seconds:
                    seen.add(each['url'])
                    count, seconds = count + 1, each['seconds'] or 0
                    if seconds and is_new:
                        self.anew.add(count)
                    is_new = not seconds
                    length += seconds
                    yield {'frag_index': count, 'url': each['url']}, seconds
            if has_lost and length < self.seconds:
                return self.beginning.break_off(length)
            if was_live and not is_live:
                self.lasted = length
                return
            was_live, is_first = is_live, False
            if length < self.seconds:
                wait_for_next(begun, listed[-1]['seconds'] if listed and listed[-1]['seconds'] else 2, bool(new))


def leave_past(listed):
    """Returns the URLs of the fragments that a recording leaves out: all before the newest one, but its initialization."""
    newest = max((number for number, each in enumerate(listed) if each['seconds']), default=0)
    initial = max((number for number, each in enumerate(listed[:newest]) if not each['seconds']), default=newest)
    return {each['url'] for each in listed[:newest]} - {each['url'] for each in (listed[initial:initial + 1] + listed[newest:])}


def download(fetcher, filename, info):
    """Fetches the fragments that `fetcher.record` yields, up to one that the file cannot hold, because nobody can fetch the others again.
    Fails once those that the source does not give last too long (D92)."""
    fetcher.params = {**fetcher.params, **OPTIONS}
    ctx = {'filename': filename, 'total_frags': None, 'live': True}
    shown = (lambda content: size_of(fetcher.ydl, content), (PICTURES, SOUND)) if info.get('is_shown') else (None, (SOUND,))
    clock = Clock(*shown)
    missing, lasted, broken = 0.0, 0.0, False
    apart, is_anew = 0.0, False  # seconds since the last fragment that was there began; whether the clock may have begun anew since

    def place(content, index):
        nonlocal broken
        if clock.is_missing(content):
            return b''
        try:
            return clock.place(content, length=apart if is_anew else None)
        except Changed:
            broken = True
            return b''

    def fragments():
        nonlocal missing, lasted, apart, is_anew
        for fragment, seconds in fetcher.record(info):
            size, is_anew = ctx['dest_stream'].tell(), is_anew or fragment['frag_index'] in fetcher.anew
            yield fragment
            is_missing = ctx['dest_stream'].tell() == size
            # Nothing is known of fragments whose initialization, which alone has no length, is missing.
            if broken or is_missing and not seconds:
                return fetcher.beginning.break_off(lasted)
            if seconds and not is_missing:
                apart, is_anew = 0.0, False
            apart += seconds
            lasted += seconds
            missing += seconds if is_missing else 0
            if missing > max(2, 0.05 * fetcher.seconds):
                raise ExtractorError(f'fragment {fragment["frag_index"]} not found: {missing} s are missing', expected=True)

    fetcher._prepare_and_start_frag_download(ctx, info)
    return fetcher.download_and_append_fragments(ctx, fragments(), info, pack_func=place)


def number_segments(doc, now):
    """Gives templates that count segments by the clock alone the newest three numbers: yt-dlp knows none of a live one."""
    if doc.get('type') != 'dynamic':
        return
    begun = parse_iso8601(doc.get('availabilityStartTime') or '') or 0
    space = re.match(r'{[^}]*}|', doc.tag)[0]
    periods = doc.findall(f'{space}Period')
    starts = [parse_duration(period.get('start') or '') for period in periods]
    # A period that is announced without its start begins later.
    ends = [now if after is None else begun + after for after in [*starts[1:], None]]
    for period, start, end in zip(periods, [begun + (each or 0) for each in starts], ends):
        passed = min(end, now) - start
        for template in period.iter(f'{space}SegmentTemplate'):
            length = float(template.get('duration') or 0) / float(template.get('timescale') or 1)
            timeline = template.find(f'{space}SegmentTimeline')
            if timeline is not None:
                end_timeline(template, timeline, passed)
            if length <= 0 or timeline is not None:
                continue
            ended = int(passed / length) if end >= now else math.ceil(round(passed / length, 3))
            template.set('startNumber', str(int(template.get('startNumber') or 1) + max(0, ended - 3)))
            # Half a segment less: a length that divides with a remainder would add one that is not there yet.
            period.set('duration', f'PT{length * (min(3, max(1, ended)) - 0.5)}S')


def end_timeline(template, timeline, seconds):
    """Has a timeline whose last piece repeats without end reach so many seconds, and begin no more than three pieces before."""
    entries, time, number = list(timeline), 0, int(template.get('startNumber') or 1)
    for entry in entries:
        time, length, more = int(entry.get('t') or time), int(entry.get('d') or 0), int(entry.get('r') or 0)
        if entry is entries[-1] and more < 0 < length:
            end = int(seconds * float(template.get('timescale') or 1)) + int(template.get('presentationTimeOffset') or 0)
            whole = max(1, (end - time) // length)
            skipped = max(0, whole - 3)
            for each in entries if skipped else []:
                timeline.remove(each)
            entry.attrib.update(t=str(time + skipped * length), r=str(whole - skipped - 1))
            if skipped:
                template.set('startNumber', str(number + skipped))
                timeline.append(entry)
            return
        time, number = time + length * (more + 1), number + more + 1


def read_again(ydl, request):
    """Opens a URL, several times if the source does not answer."""
    for attempt in range(REREADS):
        try:
            return ydl.urlopen(request)
        except (HTTPError, TransportError):
            if attempt == REREADS - 1:
                raise
            time.sleep(1)


def wait_for_next(begun, seconds, found):
    """Waits until a live source may list more: as long as a segment since the last reading, or half of that if it had nothing new."""
    time.sleep(max(0, begun + min(max(seconds if found else seconds / 2, MIN_WAIT), MAX_WAIT) - time.monotonic()))

"""Reads whole DASH manifests: yt-dlp takes one piece for those that repeat to the end of a period, and mixes up periods."""
import math
import re
from urllib.parse import urljoin

from yt_dlp.extractor.common import InfoExtractor
from yt_dlp.utils import parse_duration

MOST_PIECES = 100_000
# Pieces may begin before their period does, but no time of a file lies below zero.
LEAD = 10


def read_whole():
    """Has yt-dlp's extractors read manifests by the functions below."""
    plain = InfoExtractor._parse_mpd_periods

    def parse(self, mpd_doc, mpd_id=None, mpd_base_url='', mpd_url=None):
        if mpd_doc.get('type') == 'dynamic':
            return plain(self, mpd_doc, mpd_id, mpd_base_url, mpd_url)
        spans = span_periods(mpd_doc)
        offsets = [fill_period(period, length) for period, (_, length) in zip(children(mpd_doc, 'Period'), spans)]
        periods = list(plain(self, mpd_doc, mpd_id, mpd_base_url, mpd_url))
        for period, (start, _), offset in zip(periods, spans, offsets):
            place_period(period, start, offset, mpd_id)
        whole = join_periods(periods)
        if whole is None:
            self.report_warning('This kind of stream is not supported: its periods do not fit together')
            return []
        length = parse_duration(mpd_doc.get('mediaPresentationDuration')) or sum(length or 0 for _, length in spans)
        for each in whole['formats']:
            each['manifest_seconds'] = length or None
        return [whole]

    InfoExtractor._parse_mpd_periods = parse


def children(element, name):
    return [each for each in element if each.tag == name or each.tag.endswith('}' + name)]


def span_periods(doc):
    """Returns start and length of each period, and writes the length where only the next one tells it; `None` for an unknown length."""
    periods, reached, spans = children(doc, 'Period'), 0.0, []
    total = parse_duration(doc.get('mediaPresentationDuration'))
    for number, period in enumerate(periods):
        given, stated = parse_duration(period.get('start')), parse_duration(period.get('duration'))
        start = reached if given is None else given
        after = parse_duration(periods[number + 1].get('start')) if number + 1 < len(periods) else total
        length = stated if stated is not None else max(0.0, after - start) if after is not None else None
        if length is not None:
            period.set('duration', f'PT{length}S')
        spans.append((start, length))
        reached = start + (length or 0)
    return spans


def fill_period(period, length):
    """Writes out how often pieces repeat up to the end of a period; returns the seconds at which the clock of each representation begins."""
    offsets = {}

    def walk(element, timescale, offset):
        for kind in ('SegmentBase', 'SegmentTemplate', 'SegmentList'):
            for own in children(element, kind):
                timescale = float(own.get('timescale') or timescale)
                offset = float(own.get('presentationTimeOffset') or offset)
                for timeline in children(own, 'SegmentTimeline'):
                    repeat(timeline, None if length is None else offset + length * timescale)
                pieces = children(own, 'SegmentURL')
                if pieces and all(each.get('media') is None for each in pieces):
                    # They are ranges of one file, which is fetched whole.
                    element.remove(own)
        if element.tag.endswith('Representation') and element.get('id') is not None:
            offsets[element.get('id')] = offset / timescale
        for name in ('AdaptationSet', 'Representation'):
            for child in children(element, name):
                walk(child, timescale, offset)

    walk(period, 1.0, 0.0)
    return offsets


def repeat(timeline, end):
    """Replaces each negative count of repetitions by the number that reaches the next entry or the end."""
    entries, time = children(timeline, 'S'), 0.0
    for number, entry in enumerate(entries):
        time, piece, count = float(entry.get('t') or time), float(entry.get('d') or 0), int(entry.get('r') or 0)
        if count < 0:
            after = entries[number + 1].get('t') if number + 1 < len(entries) else end
            count = math.ceil(round((float(after) - time) / piece, 3)) - 1 if after is not None and piece > 0 else 0
            entry.set('r', str(min(max(0, count), MOST_PIECES)))
        time += piece * (count + 1)


def place_period(period, start, offsets, mpd_id):
    """Gives each piece its whole URL, and the seconds by which its clock must be moved."""
    for each in period['formats']:
        name = each['format_id'].removeprefix(f'{mpd_id}-') if mpd_id else each['format_id']
        base = each.get('fragment_base_url') or ''
        for piece in each.get('fragments') or []:
            piece.update(url=piece.get('url') or urljoin(base, piece['path']), shift=start - offsets.get(name, 0.0))


def join_periods(periods):
    """Returns one period with the formats of the longest one, each with the most similar format of every other period; `None` if one lacks."""
    filled = [each for each in periods if each['formats']] or periods[:1]
    seconds = [max([sum(piece.get('duration') or 0 for piece in form.get('fragments') or []) for form in each['formats']] or [0])
               for each in filled]
    main = filled[seconds.index(max(seconds))] if filled else {'id': '', 'formats': [], 'subtitles': {}}
    for form in main['formats']:
        if len(filled) > 1:
            found = [form if each is main else most_similar(form, each['formats']) for each in filled]
            if any(each is None or not each.get('fragments') for each in found) or form['ext'] not in ('mp4', 'm4a'):
                return None
            form['fragments'] = [{'duration': 0, **piece} for each in found for piece in each['fragments']]
        if len({piece['shift'] for piece in form.get('fragments') or []} - {0.0}) == 0:
            continue
        form['fragments'] = [{**piece, 'shift': piece['shift'] + LEAD} for piece in form['fragments']]
    return main


def most_similar(form, formats):
    """Returns the format of another period that continues a format: of the same kind and language, as near in size and bit rate as can be."""
    kind = lambda each: (each.get('vcodec') in (None, 'none'), each.get('acodec') in (None, 'none'))
    same = [each for each in formats if kind(each) == kind(form)]
    spoken = [each for each in same if each.get('language') == form.get('language')] or same
    codec = lambda each: [(each.get(name) or '').partition('.')[0] for name in ('vcodec', 'acodec')]
    apart = lambda each, name: abs((each.get(name) or 0) - (form.get(name) or 0))
    far = lambda each: (codec(each) != codec(form), apart(each, 'height'), apart(each, 'tbr'))
    return min(spoken, key=far, default=None)

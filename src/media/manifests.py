"""Reads whole DASH manifests: yt-dlp takes one fragment for those that repeat to the end of a period, and mixes up periods. Of sound in
several languages yt-dlp would take that of the highest bit rate, or of the last name, instead of the main one."""
import itertools
import math
from urllib.parse import urljoin

from yt_dlp.extractor.common import InfoExtractor
from yt_dlp.utils import parse_duration, parse_m3u8_attributes

import hooks
import ranges
from segments import ENDLIST, Listed, cut_playlist

MEDIA = '#EXT-X-MEDIA:'
# yt-dlp prefers formats of -1, which is that of all whose language nothing is known of.
ALTERNATE = -2
# The note is the name of a sound: commentary has another one.
OF_LADDER = 'manifest_url protocol format_note language'.split()
OF_TWINS = [*OF_LADDER, *'vcodec acodec width height fps tbr'.split()]
MAX_TIMELINE_ENTRIES = 100_000
# Fragments of all formats of a manifest with several periods, and comparisons of their formats.
MAX_JOINED = 1_000_000


def patch_parser():
    """Has yt-dlp's extractors read lists of HLS, and manifests that have ended, by the functions below."""
    parse_plain, merge_plain = InfoExtractor._parse_mpd_periods, InfoExtractor._merge_mpd_periods
    parse_list = InfoExtractor._parse_m3u8_formats_and_subtitles

    def parse_main(self, mpd_doc, mpd_id, *more):
        periods = list(parse_plain(self, mpd_doc, mpd_id, *more))
        for period, element in zip(periods, children(mpd_doc, 'Period')):
            others = alternates_of(element)
            for each in period['formats']:
                if name_of(each, mpd_id) in others:
                    each['language_preference'] = ALTERNATE
        return periods

    def parse(self, mpd_doc, mpd_id=None, mpd_base_url='', mpd_url=None):
        if mpd_doc.get('type') == 'dynamic':
            return parse_main(self, mpd_doc, mpd_id, mpd_base_url, mpd_url)
        lengths = measure_periods(mpd_doc)
        offsets = [fill_period(period, length) for period, length in zip(children(mpd_doc, 'Period'), lengths)]
        periods = parse_main(self, mpd_doc, mpd_id, mpd_base_url, mpd_url)
        for period, length, offset in zip(periods, lengths, offsets):
            complete_period(period, length, offset, mpd_id)
        return periods

    # An extractor may leave periods out before it merges the others, such as advertisements.
    def merge(self, periods):
        periods = list(periods)
        if not all('period_seconds' in each for period in periods for each in period['formats']):
            return merge_plain(self, periods)
        formats = join_periods([each['formats'] for each in periods])
        if not formats and any(each['formats'] for each in periods):
            self.report_warning('This kind of stream is not supported: its periods do not fit together')
        subtitles = {}
        for period in periods:
            for language, found in period['subtitles'].items():
                subtitles.setdefault(language, []).extend(found)
        return formats, subtitles

    def parse_hls(self, text, *more, **named):
        formats, subtitles = parse_list(self, name_alternates(text), *more, **named)
        # yt-dlp asks the first one how long the medium lasts.
        return sorted(formats, key=lambda form: form.get('vcodec') == 'none'), subtitles

    def measure(_, text, *__):
        return Listed(cut_playlist(text, -1, math.inf).seconds) or None if ENDLIST in text else None

    hooks.put(InfoExtractor, _parse_mpd_periods=parse, _merge_mpd_periods=merge)
    hooks.put(InfoExtractor, _parse_m3u8_formats_and_subtitles=parse_hls, _parse_m3u8_vod_duration=measure)


def children(element, name):
    return [each for each in element if each.tag == name or each.tag.endswith('}' + name)]


def name_of(form, mpd_id):
    """Returns the id that a manifest gives a format."""
    return form['format_id'].removeprefix(f'{mpd_id}-') if mpd_id else form['format_id']


def name_alternates(text):
    """Returns a list of HLS that calls all sound alternate, as yt-dlp expects, which is not the default one of its group, or the first one without that."""
    lines, groups = text.splitlines(), {}
    for number, line in enumerate(lines):
        media = parse_m3u8_attributes(line[len(MEDIA):]) if line.startswith(MEDIA) else {}
        if media.get('TYPE') == 'AUDIO':
            groups.setdefault(media.get('GROUP-ID'), {})[number] = media.get('DEFAULT') == 'YES'
    for group in groups.values():
        main = max(group, key=group.get)
        for number in group.keys() - {main}:
            lines[number] += ',DEFAULT=NO'
    return '\n'.join(lines)


def alternates_of(period):
    """Returns the ids of the sound of a period whose language or role is not that of its first main one, or of its first one without that."""
    sets = [each for each in children(period, 'AdaptationSet') if is_sound(each)]
    main = next((each for each in sets if 'main' in roles_of(each)), next((each for each in sets if not roles_of(each)), sets[0] if sets else None))
    kind = lambda each: (each.get('lang'), roles_of(each))
    return {form.get('id') for each in sets if kind(each) != kind(main) for form in children(each, 'Representation')}


def is_sound(adaptation):
    kinds = [each.get('mimeType') or '' for each in [adaptation, *children(adaptation, 'Representation')]]
    return adaptation.get('contentType') == 'audio' or any(each.startswith('audio/') for each in kinds)


def roles_of(adaptation):
    """Returns what a set says of its purpose; descriptions for the blind may have no role of their own."""
    roles = {each.get('value') for each in children(adaptation, 'Role')}
    return roles | ({'accessible'} if children(adaptation, 'Accessibility') else set())


def measure_periods(doc):
    """Returns the length of each period, `None` for an unknown one, and writes it where only the next period tells it."""
    periods, reached, lengths = children(doc, 'Period'), 0.0, []
    total = parse_duration(doc.get('mediaPresentationDuration'))
    for number, period in enumerate(periods):
        given, stated = parse_duration(period.get('start')), parse_duration(period.get('duration'))
        start = reached if given is None else given
        after = parse_duration(periods[number + 1].get('start')) if number + 1 < len(periods) else total
        length = stated if stated is not None else max(0.0, after - start) if after is not None else None
        if length is not None:
            period.set('duration', f'PT{length}S')
        lengths.append(length)
        reached = start + (length or 0)
    return lengths


def fill_period(period, length):
    """Writes out how often fragments repeat up to the end of a period; returns the seconds at which the clock of each representation begins."""
    offsets = {}

    def walk(element, timescale, offset):
        for kind in ('SegmentBase', 'SegmentTemplate', 'SegmentList'):
            for own in children(element, kind):
                timescale = float(own.get('timescale') or timescale)
                offset = float(own.get('presentationTimeOffset') or offset)
                for timeline in children(own, 'SegmentTimeline'):
                    repeat(timeline, None if length is None else offset + length * timescale)
                if ranges.is_one_file(children(own, 'SegmentURL')):
                    # It is fetched whole.
                    element.remove(own)
                    ranges.name_file(element, children(own, 'SegmentURL'), children(element, 'BaseURL'))
        if element.tag.endswith('Representation') and element.get('id') is not None:
            offsets[element.get('id')] = offset / timescale
        for name in ('AdaptationSet', 'Representation'):
            for child in children(element, name):
                walk(child, timescale, offset)

    walk(period, 1.0, 0.0)
    return offsets


def repeat(timeline, end):
    """Replaces each negative count of repetitions by the number that reaches the next entry or the end."""
    entries, time, left = children(timeline, 'S'), 0.0, MAX_TIMELINE_ENTRIES
    for number, entry in enumerate(entries):
        time, length, count = float(entry.get('t') or time), float(entry.get('d') or 0), int(entry.get('r') or 0)
        if count < 0:
            after = entries[number + 1].get('t') if number + 1 < len(entries) else end
            count = math.ceil(round((float(after) - time) / length, 3)) - 1 if after is not None and length > 0 else 0
        count = min(max(0, count), max(0, left))
        entry.set('r', str(count))
        time, left = time + length * (count + 1), left - count - 1


def complete_period(period, length, offsets, mpd_id):
    """Gives each format the length of its period, and each fragment its whole URL and the seconds at which its clock begins."""
    for each in period['formats']:
        each['period_seconds'] = length
        name = name_of(each, mpd_id)
        base = each.get('fragment_base_url') or ''
        for fragment in each.get('fragments') or []:
            fragment.update(url=fragment.get('url') or urljoin(base, fragment['path']), offset=offsets.get(name, 0.0))


def join_periods(periods):
    """Returns the formats of the longest period that every other one continues, with all of their fragments on one clock."""
    filled = [each for each in periods if each]
    if not filled:
        return []
    lengths = [length_of(each) for each in filled]
    starts = list(itertools.accumulate(lengths[:-1], initial=0.0))
    main = filled[lengths.index(max(lengths))]
    joined = [(form, [(0.0, form)]) for form in main] if len(filled) == 1 else continue_formats(filled, main, starts)
    # No time of a file lies below zero. All formats are moved alike, or sound and picture would lie apart.
    lead = max([0.0, *(each['offset'] - start for _, parts in joined for start, part in parts for each in part.get('fragments') or [])])
    # An initialization has no length, and is not always the first fragment.
    unknown = {'duration': 0} if len(filled) > 1 else {}
    found = []
    for form, parts in joined:
        fragments = [{**unknown, **each, 'shift': round(start - each['offset'] + lead, 6)}
                     for start, part in parts for each in part.get('fragments') or []]
        found.append({**form, **({'fragments': fragments} if fragments else {}), 'manifest_seconds': sum(lengths) or None})
    return found


def length_of(formats):
    """Returns the length of a period: no more than what its longest format lists, because some manifests state that of a longer past."""
    stated = formats[0]['period_seconds']
    listed = [[each.get('duration') for each in form['fragments'] if each.get('duration') is not None] for form in formats if form.get('fragments')]
    longest = max((sum(each) for each in listed), default=0) if len(listed) == len(formats) else 0
    return min(stated or longest, longest or stated or 0.0)


def continue_formats(filled, main, starts):
    """Returns each format that an MP4 can hold in all periods, with start and format of each of them."""
    many = sum(len(form.get('fragments') or []) for form in main) * len(filled)
    if max(many, len(filled) * max(map(len, filled)) ** 2) > MAX_JOINED:
        return []
    joined = []
    for form in main:
        parts = [(start, form if each is main else most_similar(form, each)) for start, each in zip(starts, filled)]
        if form['ext'] in ('mp4', 'm4a') and all(each is not None and each.get('fragments') for _, each in parts):
            joined.append((form, parts))
    return joined


def most_similar(form, formats):
    """Returns the format of another period that continues a format: of the same kind and language, as near in size and bit rate as can be."""
    kind = lambda each: (each.get('vcodec') in (None, 'none'), each.get('acodec') in (None, 'none'))
    same = [each for each in formats if kind(each) == kind(form)]
    spoken = [each for each in same if each.get('language') == form.get('language')] or same
    codec = lambda each: [(each.get(name) or '').partition('.')[0] for name in ('vcodec', 'acodec')]
    apart = lambda each, name: abs((each.get(name) or 0) - (form.get(name) or 0))
    far = lambda each: (codec(each) != codec(form), apart(each, 'height'), apart(each, 'tbr'), each.get('format_id') != form.get('format_id'))
    return min(spoken, key=far, default=None)


def twins_of(form, formats):
    """Returns the other formats that the same list of HLS describes with the same words."""
    words = lambda each: [each.get(name) for name in OF_TWINS]
    is_listed = form.get('manifest_url') and str(form.get('protocol')).startswith('m3u8')
    return [each for each in formats if is_listed and each is not form and words(each) == words(form)]


def smaller_than(form, formats):
    """Returns the other formats of the same list of HLS and of the same kind, name and language that are no larger, the largest first."""
    kind = lambda each: [*(each.get(name) for name in OF_LADDER), *(each.get(name) == 'none' for name in ('vcodec', 'acodec'))]
    size = lambda each: (each.get('height') or 0, each.get('tbr') or 0)
    is_listed = form.get('manifest_url') and str(form.get('protocol')).startswith('m3u8')
    found = [each for each in formats if is_listed and kind(each) == kind(form) and size(each) < size(form)]
    return sorted(found, key=size, reverse=True)

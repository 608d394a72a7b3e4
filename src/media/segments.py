"""Cuts media playlists of HLS, and writes them so that yt-dlp fetches what they mean."""
import re

from yt_dlp.utils import parse_iso8601, parse_m3u8_attributes

ENDLIST, MAP, DISCONTINUITY, SEQUENCE = '#EXT-X-ENDLIST', '#EXT-X-MAP:', '#EXT-X-DISCONTINUITY', '#EXT-X-MEDIA-SEQUENCE:'
DATE = '#EXT-X-PROGRAM-DATE-TIME:'
MAX_UNLIKE = 0.1  # seconds by which parts of picture and sound differ for their whole frames; where lists state lengths coarsely, or parts lap, by more
OF_SEGMENT = ('#EXTINF:', '#EXT-X-BYTERANGE', DISCONTINUITY, DATE)


class Listed(float):
    """Length of a medium that its list tells, not its page: either its sound or its picture may be shorter or longer."""


class Cut:
    """Part of a media playlist: its text, its length, number, date and length of its last segment, and the longest one as the source states it."""

    def __init__(self):
        self.text, self.seconds, self.target = '', 0.0, 5.0
        self.last, self.date, self.length = -1, None, 0.0


def cut_playlist(text, after, seconds):
    """Returns the segments of a media playlist after a number, up to the one that reaches so many seconds."""
    cut, number, lines, pending, begun, date = Cut(), 0, [], [], False, None
    for line in map(str.strip, text.splitlines()):
        if line.startswith(SEQUENCE):
            number = int(line[len(SEQUENCE):])
        elif line.startswith(OF_SEGMENT):
            pending.append(line)
        elif line.startswith('#') and not (line.startswith(MAP) and cut.seconds >= seconds):
            if line.startswith(MAP) and not begun:
                # The initialization of earlier segments is none of the first one's.
                lines = [each for each in lines if not each.startswith(MAP)]
            lines.append(line)
            if line.startswith('#EXT-X-TARGETDURATION:'):
                cut.target = seconds_of(line)
        elif not line.startswith('#') and line:
            length = sum(seconds_of(each) for each in pending if each.startswith('#EXTINF:'))
            date = next((date_of(each) for each in pending if each.startswith(DATE)), date)
            if number > after and cut.seconds < seconds:
                lines += [*([] if begun else [f'{SEQUENCE}{number}']), *pending, line]
                cut.seconds += length
                cut.last, cut.date, cut.length, begun = number, date, length, True
            pending, number, date = [], number + 1, date and date + length
    cut.text = '\n'.join(lines)
    return cut


def lay_out(text, known=None):
    """Returns a media playlist whose later initializations are segments like the others, because yt-dlp takes only a first one; for each
    fragment behind a discontinuity the length of the one before; and the length of each."""
    lines, pending, anew, lengths, length = [], [], {}, {}, 0.0
    number, index, is_new = 0, 0, False
    for line in map(str.strip, text.splitlines()):
        is_new = is_new or line == DISCONTINUITY
        if line.startswith(SEQUENCE):
            number = int(line[len(SEQUENCE):])
        if line.startswith(MAP):
            if line != known:
                index += 1
                # yt-dlp would count it as a segment, and decrypt the next ones by wrong numbers.
                lines += [*(segment_of(line) if known else [line]), f'{SEQUENCE}{number}']
            known = line
        elif line.startswith(OF_SEGMENT):
            pending.append(line)
        elif line.startswith('#'):
            lines.append(line)
        elif line:
            lines += [*pending, line]
            index, number = index + 1, number + 1
            if is_new:
                anew[index] = length
            length = lengths[index] = sum(seconds_of(each) for each in pending if each.startswith('#EXTINF:'))
            pending, is_new = [], False
    return '\n'.join(lines), anew, lengths


def align(anew, lengths, others):
    """Returns the lengths behind which clocks begin anew, as `lay_out` does, and the seconds at which they do: those of another list of the same medium,
    as far as it has them, or sound, whose parts may be longer by some samples, would be later behind each."""
    starts, reached = [], 0.0
    for index in sorted(lengths):
        starts += [reached] if index in anew else []
        reached += lengths[index]
    late = [0.0, *(start - other for start, other in zip(starts, others))]
    steps = [now - before for before, now in zip(late, late[1:])]
    # A part of a list may end behind the last one.
    if not others or abs(len(starts) - len(others)) > 1 or any(abs(step) > MAX_UNLIKE for step in steps):
        return anew, starts
    return {**anew, **{index: anew[index] - step for index, step in zip(sorted(anew), steps)}}, others


def segment_of(line):
    wanted = parse_m3u8_attributes(line[len(MAP):])
    size, _, start = wanted.get('BYTERANGE', '').partition('@')
    return [*([f'#EXT-X-BYTERANGE:{size}@{start or 0}'] if size else []), wanted.get('URI') or '']


def seconds_of(line):
    found = re.match(r'#[\w-]+:\s*(\d{1,6}(\.\d+)?)', line)
    return float(found[1]) if found else 0.0


def date_of(line):
    """Returns the Unix time of a segment, None for one that cannot be read."""
    second, fraction = parse_iso8601(line[len(DATE):].strip()), re.search(r'\.\d{1,6}', line)
    return None if second is None else second + float(fraction[0] if fraction else 0)


def skips(text, info):
    """Returns True where yt-dlp leaves segments out, so that adding up lengths would deliver too little."""
    return info.get('format_index') is not None or '#ANVATO-SEGMENT-INFO' in text or '#UPLYNK-SEGMENT' in text

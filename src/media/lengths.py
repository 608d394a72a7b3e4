"""Tells by the lists of a medium how long its formats last, and shortens them."""
import itertools
import math

import streams
from segments import Listed


def lengths_of(form):
    """Returns the seconds of the fragments of a format, zero for an initialization; None where not all are known."""
    pieces = form.get('fragments')
    is_known = isinstance(pieces, list) and all(each.get('duration') is not None for each in pieces[1:])
    return [each.get('duration') or 0 for each in pieces] if is_known else None


def told_seconds(info, chosen):
    """Returns the seconds that a format must last by the lists that were read with the page, zero where they do not tell. Formats of one kind
    last equally long, so one that lists less than another has lost its end."""
    kind = lambda form: (form.get('vcodec') == 'none', form.get('language') or info.get('language'))
    if info.get('is_live'):
        return 0
    if streams.is_hls(chosen):
        is_measured = chosen.get('vcodec') != 'none' or all(each.get('vcodec') == 'none' for each in info['formats'])
        return info['duration'] if is_measured and isinstance(info.get('duration'), Listed) else 0
    same = [each for each in info['formats'] if kind(each) == kind(chosen)]
    # The last one of equal fragments may be shorter.
    return min(max(sum(lengths_of(each) or []) for each in [chosen, *same]), chosen.get('manifest_seconds') or math.inf)


def shorten(chosen, seconds):
    """Leaves fewer fragments where their lengths are known; returns the seconds that are left to the downloader, or None."""
    lengths = lengths_of(chosen)
    if lengths is None or chosen.get('is_live'):
        return seconds
    reached = itertools.accumulate(lengths, initial=0)
    chosen['fragments'] = [each for each, start in zip(chosen['fragments'], reached) if start < seconds + 1]
    return None

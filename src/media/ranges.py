"""Reads ranges of files: those that lists of HLS and DASH name, and the rest of one whose download broke off."""
from urllib.parse import urljoin
from xml.etree.ElementTree import SubElement

from yt_dlp.utils import ExtractorError, int_or_none


def in_range(content, fragment):
    """Returns the bytes that a list names of a file, also of a server that knows no ranges and answers with the whole file; none of a missing one."""
    span = fragment.get('byte_range')
    return content[span['start']:span['end']] if span and content and len(content) > span['end'] - span['start'] else content


def is_one_file(listed):
    """Returns True for fragments of DASH that are ranges of one file; raises where some of several are ranges of the same."""
    files = {each.get('media') for each in listed}
    is_ranged = any(each.get('mediaRange') for each in listed)
    if is_ranged and 1 < len(files) < len(listed):
        raise ExtractorError('This kind of stream is not supported: its fragments are ranges of several files', expected=True)
    return files == {None} or is_ranged and len(files) == 1


def name_file(element, listed, bases):
    """Makes the file that fragments name the one of their element, unless its own URL names it."""
    name = listed[0].get('media')
    if name is not None:
        space = element.tag.partition('}')[0] + '}' if '}' in element.tag else ''
        base = bases[0] if bases else SubElement(element, f'{space}BaseURL')
        base.text = urljoin(base.text or '', name)


def marks_of(headers):
    """Returns length, tag and date of a file of which an answer has the whole or a part, None for those that it does not tell."""
    whole = None if headers.get('Content-Encoding') else headers.get('Content-Length')
    length = headers['Content-Range'].rpartition('/')[2] if headers.get('Content-Range') else whole
    return int_or_none(length), (headers.get('ETag') or '').removeprefix('W/') or None, headers.get('Last-Modified')


def is_other_file(known, found):
    """Returns True for the marks of two files. Servers of one file may give it tags of their own, and one date."""
    differs = lambda one, other: None not in (one, other) and one != other
    (length, tag, date), (new_length, new_tag, new_date) = known, found
    return differs(length, new_length) or differs(tag, new_tag) and (date is None or date != new_date)

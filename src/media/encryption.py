"""Finds by the index of a file, before it is fetched, what ffmpeg would copy and not say so: samples that only a key makes readable, and what a film
leaves out of its media."""
import io
import math
import re

from yt_dlp.networking import Request
from yt_dlp.networking.exceptions import HTTPError
from yt_dlp.utils import ExtractorError

from clock import boxes
from streams import headers_of, may_be_mp4

TO_ENTRIES = [b'moov', b'trak', b'mdia', b'minf', b'stbl', b'stsd']
ENCRYPTED = re.compile(rb'enc[vatms]|drm[is]|aavd')  # samples of ISO/IEC 14496-12, 8.12, of iTunes and of Audible
# Tags that ffmpeg gives encrypted tracks of WebM, and encrypted Windows Media.
ENCRYPTION_TAGS = ('enc_key_id', 'encryption', 'asf_protection_type')
MAX_BOXES, PIECE, MAX_SKIP, MAX_INDEX = 64, 2**16, 2**16, 2**26


def refuse_encrypted(ydl, info, probed):
    """Raises for a file with samples that only a key makes readable; `probed` is what ffprobe answers of it."""
    head = probed.get('format') or {}
    tags = [each.get('tags') or {} for each in [*(probed.get('streams') or []), head if head.get('format_name') == 'asf' else {}]]
    # ffprobe may tell nothing of a protected MP4: its index is read.
    index = index_of(ydl, info) if may_be_mp4(info) and 'mp4' in head.get('format_name', 'mp4') else b''
    info['is_edited'] = is_edited(index)
    if any(name.lower() in ENCRYPTION_TAGS for each in tags for name in each) or any(map(ENCRYPTED.fullmatch, entries_of(index))):
        raise ExtractorError('This file is DRM protected', expected=True)


def is_edited(index):
    """Returns True for the index of an MP4 with a track of several parts of its media (ISO/IEC 14496-12, 8.6.6)."""
    for start, end in boxes(index, [b'moov', b'trak', b'edts', b'elst']):
        size, place, length = (20, 8, 8) if index[start:start + 1] == b'\1' else (12, 4, 4)
        shown = [at for at in range(start + 8 + place, end - 3, size) if index[at:at + length] != b'\xff' * length]
        if len(shown) > 1:
            return True
    return False


def entries_of(index):
    """Yields the kinds of samples that the index of an MP4 names."""
    for start, end in boxes(index, TO_ENTRIES):
        # Behind its head, the box of entries tells their number.
        while (start := start + 8) + 8 <= end:
            yield index[start + 4:start + 8]
            start += max(8, int.from_bytes(index[start:start + 4], 'big')) - 8


def index_of(ydl, info):
    """Returns the index of an MP4, wherever it lies behind the URL of a format; nothing of other files."""
    at, reached, end, answer = 0, 0, 0, None
    for _ in range(MAX_BOXES):
        if at + 16 > end or at > reached + MAX_SKIP:
            (answer, end), reached = open_at(ydl, info, at, PIECE), at
        answer.read(at - reached)
        head = answer.read(8)
        if head[:4] == b'\0\0\0\1':
            head += answer.read(8)
        size = int.from_bytes(head[8:] or head[:4], 'big')
        if size < max(8, len(head)):
            return b''
        if head[4:8] == b'moov':
            wanted = min(size, MAX_INDEX)
            if at + wanted > end:
                (answer, _), head = open_at(ydl, info, at, wanted), b''
            return head + answer.read(wanted - len(head))
        at, reached = at + size, at + len(head)
    return b''


def open_at(ydl, info, at, length=None):
    """Returns the answer of a source from a byte on, and where it ends; nothing of a source that does not give it."""
    end = at + (length or math.inf)
    wanted = {'Accept-Encoding': 'identity', 'Range': f'bytes={at}-{end - 1 if length else ""}'}
    try:
        answer = ydl.urlopen(Request(info['url'], headers={**headers_of(info), **wanted}))
    except HTTPError as error:
        # Some sources refuse a range that ends behind the file.
        return open_at(ydl, info, at) if length and error.status == 416 else (io.BytesIO(), at)
    if answer.status == 206:
        return answer, end
    return (answer if at == 0 else io.BytesIO()), math.inf

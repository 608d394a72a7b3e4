"""Puts the fragments of a stream on one clock where its source begins it anew, as behind an advertisement: ffmpeg reads them as one file. Tells
pages, and others that are no media, which count as missing."""
import os
import re
import subprocess

from yt_dlp.utils import ExtractorError

# Packets of transport streams: five in a row, as other bytes hardly ever are; kind, flags and times of presentation and decoding of what begins
# there (ISO/IEC 13818-1, 2.4.3.6).
PACKET_BYTES = 188
IN_STEP = re.compile(rb'(?s)(?:G.{187}){4}G')
TIMED = re.compile(rb'(?s)\0\0\x01([\xbd\xc0-\xef])..[\x80-\xbf]([\x80-\xff]).(.{5})(.{5})')
# The table of a program's streams at the beginning of a packet, up to their list (2.4.4.8), and kinds of pictures and sound by codec.
TABLE = re.compile(rb'(?s)G[\x40-\x7f].[\x10-\x1f]\x00\x02([\xb0-\xbf].).{7}(..)')
PICTURES = {1: 'mpeg', 2: 'mpeg', 0x10: 'mpeg4', 0x1b: 'h264', 0x24: 'hevc'}
SOUND = {3: 'mp3', 4: 'mp3', 0x0f: 'aac', 0x11: 'latm', 0x81: 'ac3', 0x87: 'eac3'}
MIN_LEAP = 0.9  # seconds: playlists state lengths coarsely
JOINED_LEAP = 11  # seconds: ffmpeg joins clocks that are ten seconds apart, and keeps shorter gaps, as between slides
UNWRITTEN = re.compile('[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]')  # in no page, and soon in any media
MARKUP = re.compile(rb'\s*<[!?a-zA-Z]')  # in any encoding of Latin letters, and at the beginning of no media
AUDIO = (b'mp4a', b'ac-3', b'ec-3', b'Opus', b'fLaC')


class Changed(ExtractorError):
    """One file cannot hold the fragments before and behind another initialization, or another size of the picture."""


class Clock:
    """Moves the fragments of one stream, of which all share the first initialization. Of transport streams, whose clocks ffmpeg joins, moves those
    behind a leap ahead so far that it does so, and compares the sizes of their pictures, which `size_of` reads, and those codecs of their tables
    that are wanted."""

    def __init__(self, size_of=None, wanted=()):
        self.tracks, self.last, self.shift = None, None, 0.0
        self.size_of, self.size = size_of, None
        self.is_transport, self.codecs = False, [(kinds, []) for kinds in wanted]

    def is_missing(self, content):
        """Returns True for a fragment that counts as missing: a page, or cut, or noise amid a transport stream, as a wrong key leaves it."""
        is_noise = self.is_transport and content[:1] != b'G' and not IN_STEP.search(content)
        # Pieces of MP4 may hold such bytes, but do not begin with them.
        self.is_transport = self.is_transport or IN_STEP.match(without_tags(content)) is not None
        return is_noise or is_page(content) or is_cut(content)

    def place(self, content, shift=None, length=None):
        """Returns a fragment moved by so many seconds, or, at a clock that begins anew, behind the one before, which has that length."""
        content = without_tags(content)
        tracks = read_tracks(content)
        if tracks and self.tracks not in (None, tracks):
            raise Changed('This kind of stream is not supported: its initialization changes', expected=True)
        self.tracks = tracks or self.tracks
        times = [each for each in find_times(content) if self.tracks and each[0] in self.tracks]
        if not times:
            return self.follow(content, length) if content[:1] == b'G' else content
        first = min(time / self.tracks[track][0] for track, _, _, time in times)
        if shift is not None:
            self.shift = shift
        elif length is not None and self.last is not None:
            moved = self.last + length - first
            # Playlists state lengths coarsely: a clock that is off by less than half a fragment goes on.
            self.shift = moved if abs(moved - self.shift) > length / 2 else self.shift
        self.last = first + self.shift
        if self.shift == 0:
            return content
        placed = bytearray(content)
        for start, _ in boxes(content, [b'sidx']):
            # An index of one fragment by its old clock would tell the length of the whole.
            placed[start - 4:start] = b'free'
        for track, start, end, time in times:
            moved = time + round(self.shift * self.tracks[track][0])
            if not 0 <= moved < 256 ** (end - start):
                raise ExtractorError('This kind of stream is not supported: its clock overflows', expected=True)
            placed[start:end] = moved.to_bytes(end - start, 'big')
        return placed

    def follow(self, content, length):
        size = self.size_of(content) if self.size_of and (self.size is None or length is not None) else None
        if size and self.size not in (None, size):
            raise Changed('This kind of stream is not supported: the size of its picture changes', expected=True)
        self.size = size or self.size
        listed = kinds_of(content) if self.codecs else []
        for kinds, first in self.codecs:
            found = [kinds[kind] for kind in listed if kind in kinds]
            first += [] if first else found[:1]
            if found and first[0] not in found:
                raise Changed('This kind of stream is not supported: its codecs change', expected=True)
        last, self.last = self.last, begin_of(content)
        if None not in (self.last, last, length) and self.last - last - length > MIN_LEAP:
            self.shift += JOINED_LEAP
        return move_times(content, self.shift) if self.shift else content


def is_page(content):
    """Returns True for a fragment that is text, such as a page with which a server refuses it while it answers 200."""
    # The last character may be cut.
    return MARKUP.match(content) is not None or not UNWRITTEN.search(content[:256].decode('utf-8', 'replace').rstrip('\ufffd'))


def is_cut(content):
    """Returns True for a fragment of MP4 that ends inside of a box: in one file, nothing behind it could be read."""
    start, kind, is_fragment = 0, b'', False
    while start + 8 <= len(content):
        size, kind = int.from_bytes(content[start:start + 4], 'big'), content[start + 4:start + 8]
        is_fragment = is_fragment or kind == b'moof'
        size = int.from_bytes(content[start + 8:start + 16], 'big') if size == 1 else size
        if size < 8:
            return False  # zero: it reaches to the end
        start += size
    # Other bytes behind a box may look like the size of one.
    return is_fragment and kind in (b'moof', b'mdat') and start > len(content)


def without_tags(content):
    """Returns a fragment without the ID3 tags before its sound, which HLS has in each (RFC 8216, 3.4): in the middle of a file, they are noise."""
    while content[:3] == b'ID3' and len(content) >= 10:
        one, two, three, four = content[6:10]
        content = content[10 + (one << 21 | two << 14 | three << 7 | four) + (10 if content[5] & 0x10 else 0):]
    return content


def size_of(ydl, content):
    """Returns the size of the picture of a fragment as ffprobe tells it, None where it tells none."""
    told = ('-v', 'error', '-select_streams', 'v', '-show_entries', 'stream=width,height', '-of', 'csv=p=0')
    command = [os.path.join(ydl.params['ffmpeg_location'], 'ffprobe'), *told, '-i', 'pipe:0']
    try:
        lines = subprocess.run(command, input=content, capture_output=True, timeout=20).stdout.split()
    except subprocess.TimeoutExpired:
        return None
    return next((line for line in lines if not line.startswith(b'0')), None)


def kinds_of(content):
    """Returns the kinds of the streams that a transport stream lists first; none where no table tells them."""
    table = TABLE.search(content)
    if table is None:
        return []
    length = lambda field: int.from_bytes(field, 'big') & 0xfff
    at, end, found = table.end() + length(table[2]), table.start(1) + 2 + length(table[1]) - 4, []
    while at + 5 <= min(end, table.start() + PACKET_BYTES):
        found.append(content[at])
        at += 5 + length(content[at + 3:at + 5])
    return found


def timed_packets(content):
    """Yields what is found of the packets of a transport stream that have a time."""
    for found in TIMED.finditer(content):
        at = found.start() // PACKET_BYTES * PACKET_BYTES
        adaptation = 1 + content[at + 4] if content[at + 3] & 0x20 else 0
        # Other bytes may look alike.
        if content[at] == 0x47 and content[at + 1] & 0x40 and found.start() == at + 4 + adaptation:
            yield found


def begin_of(content):
    """Returns the second at which the picture of a transport stream begins, or its sound if it has no picture; None where nothing tells it."""
    sound = None
    for found in timed_packets(content):
        if found[1] >= b'\xe0':
            return read_time(found[3]) / 90_000
        sound = sound or found
    return read_time(sound[3]) / 90_000 if sound else None


def move_times(content, seconds):
    """Returns a transport stream whose times are so much later."""
    placed = bytearray(content)
    for found in timed_packets(content):
        for number in (3, 4) if found[2] >= b'\xc0' else (3,):
            placed[found.start(number):found.end(number)] = write_time(found[number], read_time(found[number]) + round(seconds * 90_000))
    return placed


def read_time(field):
    one, two, three, four, five = field
    return (one >> 1 & 7) << 30 | two << 22 | three >> 1 << 15 | four << 7 | five >> 1


def write_time(field, time):
    """Returns a field with another time, and the marks that it has between the bits."""
    return bytes((field[0] & 0xf1 | time >> 29 & 14, time >> 22 & 255, time >> 14 & 254 | 1, time >> 7 & 255, time << 1 & 254 | 1))


def boxes(content, path, start=0, end=None):
    """Yields start and end of what the boxes of MP4 at a path hold."""
    end = len(content) if end is None else end
    while start + 8 <= end:
        size, head = int.from_bytes(content[start:start + 4], 'big'), 8
        if size == 1:
            size, head = int.from_bytes(content[start + 8:start + 16], 'big'), 16
        size = size or end - start
        if size < head:
            return
        if content[start + 4:start + 8] == path[0]:
            inner = start + head, min(start + size, end)
            yield from boxes(content, path[1:], *inner) if path[1:] else [inner]
        start += size


def read_tracks(content):
    """Returns timescale, codec and defaults of each track of an initialization, by number; empty for other fragments."""
    defaults = {number_at(content, start + 4, 4): content[start + 4:end] for start, end in boxes(content, [b'moov', b'mvex', b'trex'])}
    tracks = {}
    for trak in boxes(content, [b'moov', b'trak']):
        header, media, samples = (next(boxes(content, path, *trak), (0, 0)) for path in (
            [b'tkhd'], [b'mdia', b'mdhd'], [b'mdia', b'minf', b'stbl', b'stsd']))
        number, timescale = (number_at(content, start + (20 if content[start:start + 1] == b'\1' else 12), 4) for start, _ in (header, media))
        entry = content[samples[0] + 12:samples[1]]
        # Of sound, the rest tells the bit rate; of a picture, `btrt` does.
        codec = entry[:32] if entry[:4] in AUDIO else re.sub(rb'(?s)\0\0\0\x14btrt.{12}', b'', entry)
        tracks[number] = (timescale or 1, codec, defaults.get(number))
    return tracks


def find_times(content):
    """Returns track, place and value of the time at which each run of samples begins."""
    found = []
    for traf in boxes(content, [b'moof', b'traf']):
        track = next((number_at(content, start + 4, 4) for start, _ in boxes(content, [b'tfhd'], *traf)), None)
        for start, _ in boxes(content, [b'tfdt'], *traf):
            length = 8 if content[start:start + 1] == b'\1' else 4
            found.append((track, start + 4, start + 4 + length, number_at(content, start + 4, length)))
    return found


def number_at(content, start, length):
    return int.from_bytes(content[start:start + length], 'big')

"""Writes the configuration of AAC into the heads of Smooth Streaming, which yt-dlp leaves out: without it, browsers play no sound."""
import io
import re

import yt_dlp.downloader.ism

import hooks
from clock import number_at

# Boxes that hold the entry of AAC, each inside the one before.
AROUND = (b'moov', b'trak', b'mdia', b'minf', b'stbl', b'stsd', b'mp4a')


def patch_heads():
    write_plain = yt_dlp.downloader.ism.write_piff_header

    def write_piff_header(stream, params):
        head = io.BytesIO()
        write_plain(head, params)
        stream.write(configure(head.getvalue(), params.get('codec_private_data') or ''))

    hooks.put(yt_dlp.downloader.ism, write_piff_header=write_piff_header)


def configure(head, config):
    """Returns a head whose AAC, if it has any, has a configuration; unchanged for one that is not written as a few hexadecimal bytes."""
    if b'mp4a' not in head or not re.fullmatch('(?:[0-9a-fA-F]{2}){2,64}', config):
        return head
    box = stream_of(bytes.fromhex(config))
    entry = head.index(b'mp4a') - 4
    end = entry + number_at(head, entry, 4)
    placed = bytearray(head[:end] + box + head[end:])
    for kind in AROUND:
        start = head.index(kind) - 4
        placed[start:start + 4] = (number_at(head, start, 4) + len(box)).to_bytes(4, 'big')
    return placed


def stream_of(config):
    """Returns the box that describes a stream of AAC (ISO/IEC 14496-14, 5.6), with no bit rates."""
    tagged = lambda tag, content: bytes((tag, len(content))) + content
    decoder = tagged(4, b'\x40\x15' + bytes(11) + tagged(5, config))
    told = tagged(3, bytes(3) + decoder + tagged(6, b'\2'))
    return (12 + len(told)).to_bytes(4, 'big') + b'esds' + bytes(4) + told

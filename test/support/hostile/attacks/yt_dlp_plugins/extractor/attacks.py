"""Stands for an extractor that was taken over: `http://attack.example/NAME` carries out what NAME says."""

import ctypes
import json
import os
import time

from yt_dlp.extractor.common import InfoExtractor

libc = ctypes.CDLL(None, use_errno=True)


def look_around(other):
    """Tries everything on all other processes and folders, and tells what worked."""
    open('secret', 'w').write('of this request')
    got = []
    pids = {int(name) for name in listed('/proc') if name.isdigit()} | set(range(1, 40)) | {os.getppid()}
    for pid in pids - {os.getpid()}:
        for name, attempt in {
            'trace': lambda: call('ptrace', 16, pid, None, None),
            'memory': lambda: open(f'/proc/{pid}/mem', 'rb').read(1),
            'files': lambda: os.listdir(f'/proc/{pid}/fd'),
            'environment': lambda: open(f'/proc/{pid}/environ', 'rb').read(1),
            'handle': lambda: take_handle(pid),
            'signal': lambda: os.kill(pid, 0),
        }.items():
            attempt_one(got, f'{name} of {pid}', attempt)
    own = os.getcwd()
    around = os.path.dirname(own)
    attempt_one(got, 'list the folders', lambda: os.listdir(around))
    attempt_one(got, 'list the folder of another', lambda: os.listdir(other))
    attempt_one(got, 'read the secret of another', lambda: open(os.path.join(other, 'secret')).read())
    attempt_one(got, 'leave its folder', lambda: open(os.path.join(around, 'x'), 'w'))
    for handle in range(3, 256):
        attempt_one(got, f'an open file {handle}', lambda: os.fstat(handle))
    attempt_one(got, 'become root', lambda: os.setuid(0) or os.chroot('/'))
    return got


def attempt_one(got, name, attempt):
    try:
        attempt()
        got.append(name)
    except OSError:
        pass  # As it should be.


def listed(path):
    try:
        return os.listdir(path)
    except OSError:
        return []  # Behind its wall it does not even see that.


def call(name, *args):
    if getattr(libc, name)(*args) != 0:
        raise OSError(ctypes.get_errno(), name)


def take_handle(pid):
    handle = os.pidfd_open(pid)
    try:
        if libc.syscall(438, handle, 0, 0) < 0:
            raise OSError(ctypes.get_errno(), 'pidfd_getfd')
    finally:
        os.close(handle)


def sleep():
    open('secret', 'w').write('of this request')
    time.sleep(60)


def strike():
    """Ends all that it can, once in its own name and once through a child that has left the group."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(0.2)
    os.kill(-1, 9)


def bomb():
    return len(bytearray(b'x' * (1 << 33)))


class AttackIE(InfoExtractor):
    _VALID_URL = r'http://attack\.example/(?P<id>[a-z_]+)(?:\?other=(?P<other>.*))?'

    def _real_extract(self, url):
        name, other = self._match_valid_url(url).group('id', 'other')
        said = {'look': lambda: look_around(other), 'sleep': sleep, 'strike': strike, 'bomb': bomb, 'pid': os.getppid}[name]()
        formats = [{'url': 'http://attack.example/x.mp4', 'ext': 'mp4', 'height': 1, 'width': 1, 'vcodec': 'h264', 'acodec': 'aac'}]
        return {'id': name, 'title': json.dumps(said), 'duration': 1, 'formats': formats}

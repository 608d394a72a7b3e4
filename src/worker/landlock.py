"""Runs a command under Landlock, isolated from siblings and parent, where there is no other sandbox.

Usage: landlock.py FOLDER PORT PATHS COMMAND...
FOLDER may be written, PATHS (`:` between them) may be read, PORT is the only one that TCP may reach (0: none).
"""

import ctypes
import os
import struct
import sys

SIGKILL = 9
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_DROP_RIGHT = 24
PR_SET_NO_NEW_PRIVS = 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULE_PATH, RULE_PORT = 1, 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE = 1 << 14
# How many of the rights above a version of Landlock knows.
RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2
DEVICES = ('/dev/null', '/dev/zero', '/dev/random', '/dev/urandom')

libc = ctypes.CDLL(None, use_errno=True)


def hide():
    """From now on no other process of this user can trace this one, read its memory or take its open files."""
    control(PR_SET_DUMPABLE, 0)


def die_with_parent():
    """The process is killed when the one that started it ends."""
    parent = os.getppid()
    control(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), SIGKILL)


def drop_rights():
    """Drops all capabilities of root for programs started from now on, even when they run as root."""
    right = 0
    while libc.prctl(PR_DROP_RIGHT, ctypes.c_ulong(right), 0, 0, 0) == 0:
        right += 1


def restrict(folder, port, paths):
    """Restricts the process to one writable folder, some readable paths and one port. Returns False without Landlock in the kernel.

    The process can then neither trace nor read the memory of an unrestricted one.
    """
    version = libc.syscall(CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    files = (1 << RIGHTS_OF_VERSION.get(version, 16)) - 1
    nets = BIND_TCP | CONNECT_TCP if version >= 4 else 0
    scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if version >= 6 else 0
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = call(CREATE_RULESET, struct.pack('QQQ', files, nets, scopes)[:size], size, 0)
    readable = EXECUTE | READ_FILE | READ_DIR
    for path, rights in [(folder, files), *((path, readable) for path in paths)]:
        allow_path(rules, path, rights)
    for device in DEVICES:
        allow_path(rules, device, READ_FILE | WRITE_FILE)
    if nets and port:
        call(ADD_RULE, rules, RULE_PORT, struct.pack('QQ', CONNECT_TCP, port), 0)
    control(PR_SET_NO_NEW_PRIVS, 1)
    call(RESTRICT_SELF, rules, 0)
    os.close(rules)
    return True


def allow_path(rules, path, rights):
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            rights &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
        call(ADD_RULE, rules, RULE_PATH, struct.pack('=Qi', rights, handle), 0)
    finally:
        os.close(handle)


def control(option, value):
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f'prctl {option}')


def call(number, *args):
    result = libc.syscall(number, *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), f'system call {number}')
    return result


if __name__ == '__main__':
    die_with_parent()
    drop_rights()
    restrict(sys.argv[1], int(sys.argv[2]), sys.argv[3].split(':'))
    os.execvp(sys.argv[4], sys.argv[4:])

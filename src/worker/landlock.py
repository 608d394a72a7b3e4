"""Runs a command under Landlock and seccomp, isolated from siblings and parent, where there is no other sandbox.

Usage: landlock.py USER FOLDER PORTS PATHS COMMAND...
USER is the user and group id of the command; 0 keeps that of this process, `parent` also the rights to give its children others.
FOLDER may be written, PATHS (`:` between them) may be read, PORTS alone may be reached by TCP (0: none).
The seccomp filter is read from file descriptor 3, which is closed then.
A supervisor of the command ends last, see supervisor.py.
"""

import ctypes
import os
import struct
import sys

# Nothing is written beside the program.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from supervisor import (  # noqa: E402 - it lies beside this file, where Python does not look by itself
    CREATE_RULESET,
    PR_SET_NO_NEW_PRIVS,
    SCOPE_SIGNALS,
    call,
    control,
    die_with_parent,
    enforce,
    fork_supervised,
    libc,
)

PR_SET_SECCOMP = 22
PR_DROP_RIGHT = 24
ADD_RULE = 445
RULE_PATH, RULE_PORT = 1, 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE = 1 << 14
# How many of the rights above a version of Landlock knows.
RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKETS = 1
SECCOMP_MODE_FILTER = 2
FILTER_FILE = 3
# To signal children, to change their group and user, and to drop rights.
RIGHTS_OF_PARENT = (5, 6, 7, 8)
DEVICES = ('/dev/null', '/dev/zero', '/dev/random', '/dev/urandom')


def drop_rights(kept=()):
    """Drops the capabilities of root, but the kept ones, for programs started from now on, even when they run as root."""
    for right in set(range(64)) - set(kept):
        libc.prctl(PR_DROP_RIGHT, ctypes.c_ulong(right), 0, 0, 0)


def become(user):
    """Gives the process a user id of its own, or drops what the one that it has may do."""
    if user == 'parent':
        drop_rights(RIGHTS_OF_PARENT)
        return
    drop_rights()
    if user != '0':
        os.setgroups([])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))


def restrict(folder, ports, paths):
    """Restricts the process to one writable folder, some readable paths and some ports. Returns False without Landlock in the kernel.

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
    for port in filter(None, ports if nets else ()):
        call(ADD_RULE, rules, RULE_PORT, struct.pack('QQ', CONNECT_TCP, port), 0)
    enforce(rules)
    return True


def load_filter(program):
    """Loads a seccomp filter besides those that are loaded; the program is empty where trawl has no filter for the processor."""
    if not program:
        return
    control(PR_SET_NO_NEW_PRIVS, 1)
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the number of instructions, and where they are.
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, struct.pack('HP', len(program) // 8, ctypes.addressof(code)), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'the kernel takes no seccomp filter')


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


if __name__ == '__main__':
    fork_supervised()
    user, folder, ports, paths = sys.argv[1:5]
    become(user)
    die_with_parent()
    restrict(folder, map(int, ports.split(':')), paths.split(':'))
    load_filter(os.read(FILTER_FILE, 1 << 16))
    os.close(FILTER_FILE)
    os.execvp(sys.argv[5], sys.argv[5:])

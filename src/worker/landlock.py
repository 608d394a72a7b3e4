"""Runs a command under Landlock and seccomp, isolated from siblings and parent, where there is no other sandbox.

Usage: landlock.py USER FOLDER PORTS PATHS COMMAND...
USER is the user and group id of the command; 0 keeps that of this process, `parent` also the rights to give its children others.
FOLDER may be written, PATHS (`:` between them) may be read, PORTS alone may be reached by TCP (0: none).
The seccomp filter is read from file descriptor 3, which is closed then.
It ends, with the exit code of the command or 128 plus its signal, when all that the command started has ended. SIGTERM ends all of it.
"""

import ctypes
import os
import signal
import struct
import sys

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_DROP_RIGHT = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULE_PATH, RULE_PORT = 1, 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE = 1 << 14
# How many of the rights above a version of Landlock knows.
RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2
SECCOMP_MODE_FILTER = 2
FILTER_FILE = 3
# To signal children, to change their group and user, and to drop rights.
RIGHTS_OF_PARENT = (5, 6, 7, 8)
DEVICES = ('/dev/null', '/dev/zero', '/dev/random', '/dev/urandom')

libc = ctypes.CDLL(None, use_errno=True)


def hide():
    """From now on no other process of this user can trace this one, read its memory or take its open files."""
    control(PR_SET_DUMPABLE, 0)


def die_with_parent(by=signal.SIGKILL):
    """The process gets a signal when the one that started it ends."""
    parent = os.getppid()
    control(PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os.kill(os.getpid(), by)


def adopt_orphans():
    """From now on a process whose parent has ended becomes a child of this one, if it descends from it."""
    control(PR_SET_CHILD_SUBREAPER, 1)


def end_strays(known=()):
    """Ends all children of this process but the known ones; returns how many there were. Meanwhile it may have adopted others.

    A process that leaves two and ends is gone before it is found. Only an end of all processes of its user comes in time.
    """
    strays = [pid for pid in children() if pid not in known]
    for user in {user_of(pid) for pid in strays} - {None, os.getuid()}:
        end_all_of(user)
    for pid in strays:
        os.kill(pid, signal.SIGKILL)
    for pid in strays:
        os.waitpid(pid, 0)
    return len(strays)


def end_all_of(user):
    """Ends every process of a user at one moment: only that user's own process finds them all."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def has_children():
    try:
        os.waitpid(-1, os.WNOHANG)
        return True
    except ChildProcessError:
        return False


def children():
    try:
        with open('/proc/thread-self/children') as listed:
            return [int(pid) for pid in listed.read().split()]
    except FileNotFoundError:
        pass  # A kernel without the list: each process names its parent behind the brackets with its own name.
    return [pid for pid in map(int, filter(str.isdigit, os.listdir('/proc'))) if parent_of(pid) == os.getpid()]


def user_of(pid):
    try:
        with open(f'/proc/{pid}/status') as status:
            return next((int(line.split()[1]) for line in status if line.startswith('Uid:')), None)
    except OSError:
        return None  # It has ended since it was listed.


def parent_of(pid):
    try:
        with open(f'/proc/{pid}/stat') as stat:
            return int(stat.read().rpartition(')')[2].split()[1])
    except OSError:
        return 0  # It has ended since it was listed.


def end(handle):
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass  # The command ended at that moment; an error here would leave its strays running.


def supervise(pid):
    """Waits for a child, then ends all that it left. Never returns."""
    command = os.pidfd_open(pid)
    signal.signal(signal.SIGTERM, lambda *_: end(command))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    nothing = os.open('/dev/null', os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    ended = 0
    while ended != pid:
        ended, status = os.wait()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # The list of children may lack one while another one ends.
    while end_strays() or has_children():
        pass
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


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
    control(PR_SET_NO_NEW_PRIVS, 1)
    call(RESTRICT_SELF, rules, 0)
    os.close(rules)
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


def control(option, value):
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f'prctl {option}')


def call(number, *args):
    result = libc.syscall(number, *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), f'system call {number}')
    return result


if __name__ == '__main__':
    die_with_parent(signal.SIGTERM)
    adopt_orphans()
    hide()
    # Until there is a child to end.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    command = os.fork()
    if command:
        supervise(command)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    user, folder, ports, paths = sys.argv[1:5]
    become(user)
    die_with_parent()
    restrict(folder, map(int, ports.split(':')), paths.split(':'))
    load_filter(os.read(FILTER_FILE, 1 << 16))
    os.close(FILTER_FILE)
    os.execvp(sys.argv[5], sys.argv[5:])

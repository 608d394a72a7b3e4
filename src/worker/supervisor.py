"""Supervises a command: all that it started, also what left its process group or outlived its parent, ends before its supervisor."""

import ctypes
import os
import select
import signal
import struct
import time

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
CREATE_RULESET, RESTRICT_SELF = 444, 446
SCOPE_SIGNALS = 2
# Limit of each way to end what a command left: some may fork faster than they are ended one by one, others may not be signalled. A
# supervisor uses at most three times as much; inspector-parent.ts kills the warm parent 5 s after it told a child to end.
MAX_END_SECONDS = 1

libc = ctypes.CDLL(None, use_errno=True)


def hide():
    """From now on no other process of this user can trace this one, read its memory or take its open files."""
    control(PR_SET_DUMPABLE, 0)


def show():
    """From now on trawl can see the open files of this process. Landlock keeps it from those that it restricts, as hide() does from all."""
    control(PR_SET_DUMPABLE, 1)


def die_with_parent(by=signal.SIGKILL):
    """The process gets a signal when the one that started it ends."""
    parent = os.getppid()
    control(PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os.kill(os.getpid(), by)


def adopt_orphans():
    """From now on a process whose parent has ended becomes a child of this one, if it descends from it."""
    control(PR_SET_CHILD_SUBREAPER, 1)


def enclose():
    """From now on this process can signal only itself and what it starts. Returns False below version 6 of Landlock."""
    if libc.syscall(CREATE_RULESET, None, 0, 1) < 6:
        return False
    enforce(call(CREATE_RULESET, struct.pack('QQQ', 0, 0, SCOPE_SIGNALS), 24, 0))
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    return False


def end_all():
    """Ends all processes that this one, which is enclosed, may signal: at one moment, so that none has time to leave another.

    Those of another user outlast it where this process lacks the right to signal them.
    """
    deadline = time.monotonic() + MAX_END_SECONDS
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return  # None is left.
    while has_children() and time.monotonic() < deadline:
        reap(children(), deadline)


def end_strays(known=()):
    """Ends all children of this process but the known ones; returns how many there were. Meanwhile it may have adopted others.

    A process that leaves two and ends is gone before it is found. Only an end of all processes of its user comes in time. What was not
    ended, such as when no process is left to end those of another user, is found by the next call.
    """
    deadline = time.monotonic() + MAX_END_SECONDS
    strays = [pid for pid in children() if pid not in known]
    for user in {user_of(pid) for pid in strays} - {None, os.getuid()}:
        end_all_of(user, deadline)
    for pid in strays:
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            pass  # Only its own user may signal it.
    reap(strays, deadline)
    return len(strays)


def end_all_of(user, deadline):
    """Ends every process of a user at one moment: only that user's own process finds them all."""
    try:
        pid = os.fork()
    except OSError:
        return  # All processes of the pod or the machine are used up.
    if pid == 0:
        try:
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    # The user's processes may stop it; then it is a stray of the next call.
    reap([pid], deadline)


def reap(pids, deadline):
    """Waits for the ends of some children, until a moment of the monotonic clock."""
    for pid in pids:
        ended = select.poll()
        handle = os.pidfd_open(pid)
        try:
            ended.register(handle, select.POLLIN)
            if ended.poll(1000 * max(0, deadline - time.monotonic())):
                os.waitpid(pid, 0)
        finally:
            os.close(handle)


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


def kill_command(handle):
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass  # The command ended at that moment; an error here would leave its strays running.


def fork_supervised():
    """Goes on in a new process. This one waits for it and ends, with its exit code or 128 plus its signal, when all that it started has ended.

    SIGTERM, or the end of the process that started this one, ends all of it.
    """
    die_with_parent(signal.SIGTERM)
    adopt_orphans()
    hide()
    is_enclosed = enclose()
    # Until there is a child to end.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    pid = os.fork()
    if pid:
        supervise(pid, is_enclosed)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def supervise(pid, is_enclosed):
    """Waits for a child, then ends all that it left. Never returns."""
    command = os.pidfd_open(pid)
    signal.signal(signal.SIGTERM, lambda *_: kill_command(command))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    nothing = os.open('/dev/null', os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    ended = 0
    while ended != pid:
        ended, status = os.wait()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if is_enclosed:
        end_all()
    deadline = time.monotonic() + MAX_END_SECONDS
    # The list of children may lack one while another one ends.
    while (end_strays() or has_children()) and time.monotonic() < deadline:
        pass
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def enforce(rules):
    control(PR_SET_NO_NEW_PRIVS, 1)
    call(RESTRICT_SELF, rules, 0)
    os.close(rules)


def control(option, value):
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f'prctl {option}')


def call(number, *args):
    result = libc.syscall(number, *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), f'system call {number}')
    return result

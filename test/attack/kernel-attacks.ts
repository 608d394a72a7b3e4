/** Prints one JSON list for each attack: its name, and how the kernel answered. */
export const kernelAttacks = `
import ctypes, errno, json, mmap, os, platform, socket, subprocess

libc = ctypes.CDLL(None, use_errno=True)
column = {'x86_64': 0, 'aarch64': 1}[platform.machine()]

def say(name, answer):
    print(json.dumps([name, answer]), flush=True)

def call(*numbers_and_args):
    numbers, args = numbers_and_args[0], numbers_and_args[1:]
    answer = libc.syscall(ctypes.c_long(numbers[column]), *[ctypes.c_long(arg) for arg in args])
    return 'works' if answer >= 0 else errno.errorcode[ctypes.get_errno()]

def apart(attempt):
    """Tries in a child: its answer, or the signal that ended it."""
    near, far = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(far, str(attempt()).encode())
        finally:
            os._exit(0)
    os.close(far)
    said = os.read(near, 100).decode()
    _, status = os.waitpid(pid, 0)
    return f'signal {os.WTERMSIG(status)}' if os.WIFSIGNALED(status) else said

def old_call():
    """The number 20, getpid, of the 32-bit ABI."""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))() > 0

def reach(family, kind, protocol=0, make=socket.socket):
    try:
        make(family, kind, protocol)
        return 'works'
    except OSError as error:
        return errno.errorcode[error.errno]

BAD = -1
NEW_USER = 0x10000000
for name, numbers, *args in [
    ('unshare', (272, 97), NEW_USER), ('clone', (56, 220), NEW_USER | 17, 0, 0, 0, 0),
    ('clone of a thread with files of its own', (56, 220), 0x10900, 0, 0, 0, 0),
    ('sendto that connects past Landlock', (44, 206), BAD, 0, 0, 0x20000000, 0, 0),
    ('close_range that unshares files', (436, 436), 1000, 1000, 2), ('clone3', (435, 435), 0, 0),
    ('setns', (308, 268), BAD, 0), ('mount', (165, 40), 0, 0, 0, 0, 0), ('fsopen', (430, 430), 0, 0), ('open_tree', (428, 428), BAD, 0, 0),
    ('keyctl', (250, 219), 0, -3, 1), ('add_key', (248, 217), 0, 0, 0, 0, 0), ('bpf', (321, 280), 0, 0, 0),
    ('perf_event_open', (298, 241), 0, 0, -1, -1, 0), ('ptrace', (101, 117), 16, BAD, 0, 0), ('process_vm_readv', (310, 270), BAD, 0, 0, 0, 0, 0),
    ('io_uring_setup', (425, 425), 1, 0), ('io_setup', (206, 0), 1, 0), ('userfaultfd', (323, 282), 1), ('kexec_load', (246, 104), 0, 0, 0, 0),
    ('finit_module', (313, 273), BAD, 0, 0), ('memfd_create', (319, 279), 0, 0), ('memfd_secret', (447, 447), BAD),
    ('shmget', (29, 194), 0, 4096, 0o600), ('mq_open', (240, 180), 0, 0, 0, 0), ('personality', (135, 92), 0xffffffff),
    ('open_by_handle_at', (304, 265), BAD, 0, 0), ('fanotify_init', (300, 262), 0, 0), ('vmsplice', (278, 75), BAD, 0, 0, 0),
    ('sendmsg', (46, 211), BAD, 0, 0), ('pidfd_getfd', (438, 438), BAD, 0, 0), ('a call of a kernel to come', (470, 470), BAD),
    ('sched_setscheduler', (144, 119), BAD, 0, 0), ('sched_setattr', (314, 274), BAD, 0, 0), ('sched_setaffinity', (203, 122), BAD, 0, 0),
    ('setpriority', (141, 140), 9, 0, 0), ('ioprio_set', (251, 30), 9, 0, 0), ('prlimit of another process', (302, 261), BAD, 0, 0, 0),
    ('fchmod', (91, 52), BAD, 0), ('fchmodat', (268, 53), BAD, 0, 0), ('fchmodat2', (452, 452), BAD, 0, 0, 0), ('fchown', (93, 55), BAD, 0, 0),
    ('ioctl of a file system', (16, 29), BAD, 0x40086602, 0), ('ioctl of a process', (16, 29), BAD, 0xff01, 0),
    ('fchownat', (260, 54), BAD, 0, 0, 0, 0), ('utimensat', (280, 88), BAD, 0, 0, 0), ('setxattr', (188, 5), 0, 0, 0, 0, 0),
    ('removexattr', (197, 14), 0, 0), ('inotify_init1', (294, 26), 0), ('inotify_add_watch', (254, 27), BAD, 0, 0),
]:
    say(name, apart(lambda: call(numbers, *args)))
if platform.machine() == 'x86_64':
    for name, number in [('chmod', 90), ('chown', 92), ('lchown', 94), ('utime', 132), ('utimes', 235), ('inotify_init', 253)]:
        say(name, apart(lambda: call((number,), 0, 0)))
    say('a call of the x32 ABI', apart(lambda: call((0x40000000 + 39,))))
    say('a call of the 32-bit ABI', apart(old_call))
for name, *kind in [('netlink', 16, 3), ('packet', 17, 3), ('alg', 38, 5), ('vsock', 40, 1), ('bluetooth', 31, 3), ('raw', 2, 3, 1), ('sctp', 2, 1, 132),
    ('udp', 2, 2), ('udp of IPv6', 10, 2), ('dccp', 2, 6), ('seqpacket', 2, 5)]:
    say(f'a socket {name}', reach(*kind))
for name, *kind in [('tcp', 2, 1, 6), ('tcp of IPv6', 10, 1)]:
    say(f'may: {name}', reach(*kind))
for name, kind in [('datagrams', 2), ('packets', 5)]:
    say(f'a socket pair of {name}', reach(1, kind, make=socket.socketpair))
say('may: a pair', apart(lambda: 'works' if socket.socketpair() else ''))
say('may: ioctl of a terminal or a pipe', apart(lambda: call((16, 29), 0, 0x5451, 0)))
with socket.socket() as tcp:
    owner = ctypes.c_int()
    say('may: ioctl of a socket', call((16, 29), tcp.fileno(), 0x8904, ctypes.addressof(owner)))
say('may: prlimit of itself', call((302, 261), 0, 7, 0, 0))
say('a UNIX socket', reach(1, 1))
def listen():
    try:
        socket.socket().listen()
        return 'works'
    except OSError as error:
        return errno.errorcode[error.errno]
say('listen without a port of its own', listen())
mounted = subprocess.run(['unshare', '-Urm', 'mount', '-t', 'tmpfs', 'x', '.'], stderr=subprocess.DEVNULL).returncode
say('mount a tmpfs in a user namespace', 'works' if mounted == 0 else 'ENOSYS')
`;

/**
 * Returns how the kernel must answer an attack. Only with a network of its own, a child reaches egress by a UNIX socket and listens: no
 * version of Landlock bars a socket that listens at a port which the kernel chooses.
 */
export function expectedAnswer(name: string, hasOwnNetwork: boolean): string {
  const isForOwnNetwork = ['a UNIX socket', 'listen without a port of its own'].includes(name);
  if (name.startsWith('may: ') || (isForOwnNetwork && hasOwnNetwork)) return 'works';
  if (name === 'a UNIX socket') return 'EAFNOSUPPORT';
  if (name.startsWith('a socket '))
    return /raw|sctp|udp|dccp|seqpacket|pair/.test(name) ? 'EPROTONOSUPPORT' : 'EAFNOSUPPORT';
  if (name.startsWith('ioctl ')) return 'ENOTTY';
  // SIGSYS.
  if (name === 'a call of the 32-bit ABI') return 'signal 31';
  return /^(clone|close_range|sendto|prlimit)\b/.test(name) ? 'EPERM' : 'ENOSYS';
}

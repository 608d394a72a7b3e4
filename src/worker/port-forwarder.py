"""Runs a command beside ports of the loopback address that lead to UNIX sockets: the only way out of a sandbox.

Usage: port-forwarder.py FOLDER PORTS MAX_CONNECTIONS COMMAND... (`:` between ports)
The socket of a port has its number as name in FOLDER. Each port carries at most MAX_CONNECTIONS at once.
"""

import os
import selectors
import socket
import sys
from _thread import allocate_lock, stack_size, start_new_thread

CHUNK_BYTES = 1 << 17
# The system's 8 MiB for each thread would soon reach the memory limit of the sandbox.
STACK_BYTES = 1 << 18


class ConnectionLimit:
    """Counts the connections of one port."""

    def __init__(self, max_connections):
        self.left, self.lock = max_connections, allocate_lock()

    def take(self):
        with self.lock:
            has_room = self.left > 0
            self.left -= has_room
            return has_room

    def leave(self):
        with self.lock:
            self.left += 1


def main(folder, ports, max_connections, command):
    servers = {port: listen(int(port)) for port in ports.split(':')}
    child = os.fork()
    if child == 0:
        for server in servers.values():
            server.close()
        try:
            os.execvp(command[0], command)
        finally:
            os._exit(127)
    # The command's input and output are its own: whoever reads them must see their end.
    nothing = os.open('/dev/null', os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    stack_size(STACK_BYTES)
    events = selectors.DefaultSelector()
    for port, server in servers.items():
        events.register(server, selectors.EVENT_READ, (f'{folder}/{port}', ConnectionLimit(max_connections)))
    start_new_thread(accept_all, (events,))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def listen(port):
    server = socket.socket()
    server.bind(('127.0.0.1', port))
    server.listen(128)
    return server


def accept_all(events):
    while True:
        for key, _ in events.select():
            accept(key.fileobj, *key.data)


def accept(server, path, limit):
    try:
        near, _ = server.accept()
        far = socket.socket(socket.AF_UNIX)
    except OSError:
        return  # The client has left, or the process has too many files.
    if not limit.take():
        near.close()
        far.close()
        return
    threads = 0
    try:
        far.connect(path)
        threads = start(near, far, limit)
    except OSError:
        pass  # Without a way out the caller sees a connection that breaks off.
    if threads == 0:
        near.close()
        far.close()
        limit.leave()
    elif threads == 1:
        # The thread that runs waits for one of them, and closes both.
        shut(near, socket.SHUT_RDWR)
        shut(far, socket.SHUT_RDWR)


def start(near, far, limit):
    """Starts two threads that carry the bytes; returns how many could be started."""
    ends = [0, allocate_lock()]
    with ends[1]:
        for carry in (carry_out, carry_back):
            try:
                start_new_thread(run, (carry, near, far, ends, limit))
            except RuntimeError:
                break
            ends[0] += 1
        return ends[0]


def run(carry, near, far, ends, limit):
    carry(near, far)
    with ends[1]:
        ends[0] -= 1
        if ends[0] == 0:
            near.close()
            far.close()
            limit.leave()


def carry_out(near, far):
    """The end of the caller is told; the connection counts until the other side has ended too, whatever became of the caller."""
    try:
        copy(near, far)
    except OSError:
        pass  # One side broke off.
    shut(far, socket.SHUT_WR)


def carry_back(near, far):
    try:
        copy(far, near)
    except OSError:
        shut(far, socket.SHUT_RDWR)
    shut(near, socket.SHUT_WR)


def copy(source, target):
    while chunk := source.recv(CHUNK_BYTES):
        target.sendall(chunk)


def shut(side, how):
    try:
        side.shutdown(how)
    except OSError:
        pass  # It was not connected any more.


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])

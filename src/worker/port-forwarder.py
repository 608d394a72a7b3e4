"""Runs a command beside ports of the loopback address that lead to a UNIX socket: the only way out of a sandbox.

Usage: port-forwarder.py SOCKET PORTS MOST COMMAND... (`:` between ports; MOST connections at once by each of them)
"""

import os
import socket
import sys
from _thread import allocate_lock, start_new_thread

CHUNK_BYTES = 1 << 17


class Room:
    """How many connections there may still be."""

    def __init__(self, most):
        self.left, self.lock = most, allocate_lock()

    def take(self):
        with self.lock:
            has_room = self.left > 0
            self.left -= has_room
            return has_room

    def leave(self):
        with self.lock:
            self.left += 1


def main(path, ports, most, command):
    servers = [listen(int(port)) for port in ports.split(':')]
    child = os.fork()
    if child == 0:
        for server in servers:
            server.close()
        try:
            os.execvp(command[0], command)
        finally:
            os._exit(127)
    # The command's input and output are its own: whoever reads them must see their end.
    nothing = os.open('/dev/null', os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    for server in servers:
        start_new_thread(accept, (server, path, int(most)))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def listen(port):
    server = socket.socket()
    server.bind(('127.0.0.1', port))
    server.listen(128)
    return server


def accept(server, path, most):
    room = Room(most)
    while True:
        near, _ = server.accept()
        if not room.take():
            near.close()
            continue
        far = socket.socket(socket.AF_UNIX)
        threads = 0
        try:
            far.connect(path)
            threads = start(near, far, room)
        except OSError:
            pass  # Without a way out the caller sees a connection that breaks off.
        if threads < 2:
            near.close()
            far.close()
        if threads == 0:
            room.leave()


def start(near, far, room):
    """Starts two threads that carry the bytes; returns how many could be started."""
    ends = [0, allocate_lock()]
    with ends[1]:
        for carry in (carry_out, carry_back):
            try:
                start_new_thread(run, (carry, near, far, ends, room))
            except RuntimeError:
                break
            ends[0] += 1
        return ends[0]


def run(carry, near, far, ends, room):
    carry(near, far)
    with ends[1]:
        ends[0] -= 1
        if ends[0] == 0:
            near.close()
            far.close()
            room.leave()


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
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])

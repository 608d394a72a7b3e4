"""Runs a command beside a port of the loopback address that leads to a UNIX socket: the only way out of a sandbox.

Usage: port-forwarder.py SOCKET PORT COMMAND...
"""

import os
import socket
import sys
from _thread import allocate_lock, start_new_thread

CHUNK_BYTES = 1 << 17


def main(path, port, command):
    server = socket.socket()
    server.bind(('127.0.0.1', int(port)))
    server.listen(128)
    child = os.fork()
    if child == 0:
        server.close()
        try:
            os.execvp(command[0], command)
        finally:
            os._exit(127)
    # The command's input and output are its own: whoever reads them must see their end.
    nothing = os.open('/dev/null', os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    start_new_thread(accept, (server, path))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def accept(server, path):
    while True:
        near, _ = server.accept()
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(path)
            start(near, far)
        except (OSError, RuntimeError):
            # Without a way out, or without a thread to carry the bytes, the caller sees a connection that breaks off.
            near.close()
            far.close()


def start(near, far):
    ends = [2, allocate_lock()]
    start_new_thread(carry, (near, far, ends))
    start_new_thread(carry, (far, near, ends))


def carry(source, target, ends):
    try:
        while chunk := source.recv(CHUNK_BYTES):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side broke off: so does the other.
        for side in (source, target):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It was not connected any more.
    with ends[1]:
        ends[0] -= 1
        if ends[0] == 0:
            source.close()
            target.close()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

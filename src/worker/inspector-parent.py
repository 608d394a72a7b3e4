"""Keeps yt-dlp loaded and warm, and forks one isolated child for each request.

Usage: inspector-parent.py DRIVER PLUGINS (folders with `:` between them). Requests are JSON lines on standard input:
{id, bytes, folder, user, env, port, paths, filter, limits}, followed by so many bytes of input, starts a child, {end: id} ends it.
Answers are frames on standard output: a line `ID pid PID`, `ID out BYTES` with so many bytes of a child, or `ID end CODE`.
This process never parses output of a child, holds no secret and has no network. A child begins with a copy of its memory: what
belongs to one request passes through two buffers alone, which are wiped, because Python leaves what it frees where it was.
"""

import gc
import importlib.util
import json
import os
import resource
import selectors
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import landlock  # noqa: E402 - it lies beside this file, where Python does not look by itself
import supervisor  # noqa: E402

CHUNK_BYTES = 1 << 16
OUTPUT_BYTES = 1 << 24
# Longer than a request with its input.
inbox = memoryview(bytearray(1 << 18))
outbox = memoryview(bytearray(CHUNK_BYTES))
NOWHERE = 'http://127.0.0.1:9'
READY = b'ready\n'
# Pause between two looks for processes that have outlived their supervisor.
STRAYS_INTERVAL_SECONDS = 0.25


class Child:
    """One request: its supervisor, what the supervised process writes, and how much of it there may still be."""

    def __init__(self, name, pid, output):
        self.name, self.pid, self.output = name, pid, output
        self.handle = os.pidfd_open(pid)
        self.left = OUTPUT_BYTES

    def end(self):
        os.kill(self.pid, signal.SIGTERM)

    def forward(self):
        """Hands on what the child has written so far; False at its end."""
        try:
            size = os.readv(self.output, [outbox])
        except BlockingIOError:
            return False
        self.left -= size
        if self.left < 0:
            self.end()
        elif size:
            write(b'%d out %d\n' % (self.name, size))
            write(outbox[:size])
        wipe(outbox[:size])
        return self.left >= 0 and size > 0


def main(path, plugins):
    driver = load(path)
    driver.prepare([folder for folder in plugins.split(':') if folder])
    warm(driver)
    landlock.drop_rights()
    supervisor.adopt_orphans()
    supervisor.hide()
    gc.collect()
    gc.freeze()
    children, events = {}, selectors.DefaultSelector()
    os.set_blocking(0, False)
    events.register(0, selectors.EVENT_READ)
    write(READY)
    filled = strays = 0
    while True:
        ready = events.select(STRAYS_INTERVAL_SECONDS if children or strays else None)
        # Without Landlock 6, a process of the same user may outlive its supervisor, and is counted nowhere then.
        strays = supervisor.end_strays([child.pid for child in children.values()])
        for key, _ in ready:
            if key.data is None:
                size = os.readv(0, [inbox[filled:]])
                if size == 0:
                    return
                filled = obey_all(filled + size, driver, children, events)
            elif key.data.name not in children:
                continue
            elif key.fd == key.data.handle:
                finish(key.data, children, events)
            elif not key.data.forward() and key.fd in events.get_map():
                events.unregister(key.fd)


def load(path):
    spec = importlib.util.spec_from_file_location('driver', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def warm(driver):
    """Goes once through all that a request needs, up to a refused connection."""
    driver.sites.compile_lazily(driver.yt_dlp.extractor.gen_extractor_classes())
    order = {'action': 'inspect', 'url': f'{NOWHERE}/x', 'folder': '/', 'proxy': NOWHERE, 'tools': '/', 'node': '/', 'plugins': [], 'cookies': None}
    driver.answer_inspect({**order, 'limits': {'file_bytes': 1}})
    # Tries all patterns of dates, which stay compiled.
    driver.yt_dlp.utils.unified_timestamp('no date')


def obey_all(filled, driver, children, events):
    """Carries out the requests that have arrived whole, and moves the rest to the front; returns its size."""
    start = 0
    while (line_end := inbox.obj.find(b'\n', start, filled)) >= 0:
        request = json.loads(bytes(inbox[start:line_end]))
        input_end = line_end + 1 + request.get('bytes', 0)
        if input_end > filled:
            break
        obey(request, inbox[line_end + 1:input_end], driver, children, events)
        start = input_end
    rest = filled - start
    inbox[:rest] = inbox[start:filled]
    wipe(inbox[rest:filled])
    return rest


def wipe(buffer):
    buffer[:] = bytes(len(buffer))


def obey(request, given, driver, children, events):
    if 'end' in request:
        child = children.get(request['end'])
        if child:
            child.end()
        return
    near_in, far_in = os.pipe()
    near_out, far_out = os.pipe()
    try:
        pid = os.fork()
    except OSError:  # All processes of the pod or the machine are used up.
        for handle in (near_in, far_in, near_out, far_out):
            os.close(handle)
        write(b'%d end 1\n' % request['id'])
        return
    if pid == 0:
        run_child(request, driver, near_in, far_out)
    os.close(near_in)
    os.close(far_out)
    # A pipe takes this much without a reader, and no input is longer.
    os.write(far_in, given[:CHUNK_BYTES])
    os.close(far_in)
    os.set_blocking(near_out, False)
    child = Child(request['id'], pid, near_out)
    children[child.name] = child
    write(b'%d pid %d\n' % (child.name, pid))
    events.register(near_out, selectors.EVENT_READ, child)
    events.register(child.handle, selectors.EVENT_READ, child)


def run_child(request, driver, near_in, far_out):
    """Becomes the child: nothing of the parent is left but its code. Never returns."""
    code = 1
    try:
        wipe(inbox)
        os.dup2(near_in, 0)
        os.dup2(far_out, 1)
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        supervisor.fork_supervised()
        os.setsid()
        limit(request['limits'], request['user'])
        user = request['user']
        if user:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        supervisor.hide()
        supervisor.die_with_parent()
        os.chdir(request['folder'])
        os.environ.clear()
        os.environ.update(request['env'])
        if landlock.restrict(request['folder'], [request['port']], request['paths']):
            supervisor.show()
        landlock.load_filter(bytes.fromhex(request['filter']))
        with open(0, encoding='utf-8') as orders, open(1, 'w', encoding='utf-8') as answers:
            print(json.dumps(driver.answer_inspect(json.loads(orders.readline()))), file=answers)
        code = 0
    except BaseException as error:  # noqa: BLE001 - the parent's code must not go on here
        os.write(2, f'{type(error).__name__}: {error}\n'.encode()[:2000])
    finally:
        os._exit(code)


def limit(limits, user):
    bounds = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, limits['file_bytes'])]
    bounds += [(resource.RLIMIT_DATA, limits['memory_bytes']), (resource.RLIMIT_CPU, limits['cpu_seconds'])]
    if user:
        # The system counts the processes of a user: one of the child's own has none but its own.
        bounds.append((resource.RLIMIT_NPROC, limits['processes']))
    for name, most in bounds:
        resource.setrlimit(name, (most, most))


def finish(child, children, events):
    # Until it is waited for, no other process has its id.
    while child.forward():
        pass
    _, status = os.waitpid(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    for handle in (child.handle, child.output):
        if handle in events.get_map():
            events.unregister(handle)
        os.close(handle)
    del children[child.name]
    write(b'%d end %d\n' % (child.name, code if code <= 128 else 128 - code))


def write(frame):
    while frame:
        frame = frame[os.write(1, frame):]


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])

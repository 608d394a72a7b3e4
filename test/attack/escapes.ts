/**
 * Python text that tries what a child of a worker must not do, and reports one JSON list of what worked. `given.tcp` holds
 * addresses and ports that it must not reach, `given.sockets`, `given.reads` and `given.writes` paths, `given.secret` a file; with
 * `given.sharesProcesses` it sees the processes and the folders of its worker.
 */
export const escapes = `
import json, os, resource, signal, socket

worked = []

def attempt(name, action):
    try:
        action()
        worked.append(name)
    except OSError:
        pass

def reach(host, port):
    socket.create_connection((host, port), 2).close()

def read(path):
    with open(path, 'rb') as file: file.read(1)

def write(path):
    # Not truncated: the tests themselves may need the file.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))

for host, port in given['tcp']: attempt(f'reach {host}:{port}', lambda: reach(host, port))
for path in given['reads']: attempt(f'read {path}', lambda: read(path))
for path in given['writes']: attempt(f'write {path}', lambda: write(path))
for pid in [1, os.getppid()] if given['sharesProcesses'] else []:
    for place in ['environ', 'mem', 'maps', 'fd', 'root']:
        path = f'/proc/{pid}/{place}'
        attempt(f'look into {place} of process {pid if pid == 1 else "above"}', lambda: os.listdir(path) if place in ('fd', 'root') else read(path))
attempt('open the secret to everyone', lambda: os.chmod(given['secret'], 0o666))
attempt('change the time of the secret', lambda: os.utime(given['secret'], (1, 1)))
for path in given['sockets']: attempt(f'connect to {path}', lambda: socket.socket(socket.AF_UNIX).connect(path))
for pid in [1, os.getppid()]: attempt(f'read a limit of process {pid}', lambda: resource.prlimit(pid, resource.RLIMIT_CORE))
attempt('send without TCP', lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9)))
if given['sharesProcesses']: attempt('signal process 1', lambda: os.kill(1, signal.SIGCONT))
if given['sharesProcesses']: attempt('list the folder above', lambda: os.listdir('..'))
attempt('write to the folder above', lambda: write('../written'))
report(json.dumps(worked))
`;

/**
 * Leaves a process that makes files, then fills its folder with what a removal by path cannot remove: a worker that measures
 * the folder then ends it at once.
 */
export const cling = `
import os, subprocess, time
pid = os.fork()
if pid == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        n = 0
        while True:
            n += 1
            try: open(f'more{n % 50}', 'w').close()
            except OSError: pass
            time.sleep(0.001)
    os._exit(0)
os.waitpid(pid, 0)
report('clings')
os.mkdir('closed', 0o300)
open('closed/file', 'w').close()
deep = os.getcwd()
for n in range(40):
    os.mkdir('d' * 200)
    os.chdir('d' * 200)
os.chdir(deep)
`;

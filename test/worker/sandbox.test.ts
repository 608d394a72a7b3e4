import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { aFolder } from '../support/redis.ts';
import { processesOf } from '../support/worker.ts';
import { openTestWorkspace, sandboxes, type TestWorkspace } from '../support/workspace.ts';

/** Tries one thing after the other and tells which of them worked; nothing that stays open may stop the rest. */
const attacks = `
import ctypes, json, os, signal, socket, struct, sys
target = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
pid = target['pid']
def ptrace():
    if libc.ptrace(16, pid, None, None) != 0: raise OSError(ctypes.get_errno(), 'ptrace')
def memory():
    class Piece(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
    near, far = Piece(ctypes.addressof(ctypes.create_string_buffer(8)), 8), Piece(target['address'], 8)
    if libc.process_vm_readv(pid, ctypes.byref(near), 1, ctypes.byref(far), 1, 0) < 0: raise OSError(ctypes.get_errno(), 'vm')
def write(path):
    with open(path, 'w') as file: file.write('x')
def unix():
    socket.socket(socket.AF_UNIX).connect(target['socket'])
def tcp(port):
    with socket.create_connection(('127.0.0.1', port), 2) as way: return way.getsockname()
def proxy():
    with socket.create_connection(('127.0.0.1', target['proxy']), 2) as way:
        way.sendall(b'GET http://example.com/ HTTP/1.1\\r\\nhost: example.com\\r\\nconnection: close\\r\\n\\r\\n')
        if b'hello from the proxy' not in b''.join(iter(lambda: way.recv(65536), b'')): raise OSError('no answer')
def gained():
    libc.setuid(0)
    os.chroot('/')
tries = {
    'trace another process': ptrace,
    'read its memory': memory,
    'open its memory': lambda: open(f'/proc/{pid}/mem', 'rb').read(1),
    'read its environment': lambda: open(f'/proc/{pid}/environ', 'rb').read(1),
    'list its open files': lambda: os.listdir(f'/proc/{pid}/fd'),
    'signal it': lambda: os.kill(pid, 0),
    'read a file of another job': lambda: open(target['secret']).read(),
    'list the folder of another job': lambda: os.listdir(os.path.dirname(target['secret'])),
    'write into the folder of another job': lambda: write(target['secret'] + '2'),
    'write beside its own folder': lambda: write(os.path.join(os.getcwd(), '..', 'x')),
    'write into memory': lambda: write('/dev/shm/x'),
    'write into the root': lambda: write('/x'),
    'change a program': lambda: write('/usr/bin/trawl-test'),
    'read the names of users': lambda: open('/etc/passwd').read(),
    'reach a port': lambda: tcp(target['port']),
    'reach a socket': unix,
    'get rights': gained,
    'write into its own folder': lambda: write('own'),
    'reach the proxy': proxy,
}
for name, attempt in tries.items():
    try:
        attempt()
        print(json.dumps([name, True]))
    except OSError as error:
        print(json.dumps([name, False, str(error)]))
print(json.dumps(['environment', sorted(os.environ)]))
`;
const allowed = ['write into its own folder', 'reach the proxy'];

describe('A child in its sandbox', () => {
  let victim: ReturnType<typeof spawn>;
  let proxy: Server;
  let canary: Server;
  let gateway: Server;
  let hits = 0;
  const { folder, remove } = aFolder();
  const port = (server: Server) => (server.address() as AddressInfo).port;

  before(async () => {
    victim = spawn('sleep', ['1000'], { stdio: 'ignore', env: { SECRET: 'of another job' } });
    proxy = createHttp((_, answer) => answer.end('hello from the proxy')).listen(0, '127.0.0.1');
    const count = () => {
      hits++;
    };
    canary = createServer(count).listen(0, '127.0.0.1');
    gateway = createServer(count).listen(join(folder, 'gateway'));
    await Promise.all([once(proxy, 'listening'), once(canary, 'listening'), once(gateway, 'listening')]);
    mkdirSync(join(folder, 'other'));
    writeFileSync(join(folder, 'other', 'secret'), 'of another job');
  });

  after(() => {
    victim.kill('SIGKILL');
    for (const server of [proxy, canary, gateway]) server.close();
    remove();
  });

  for (const sandbox of sandboxes) {
    it(`reaches its own folder and the proxy, and nothing else (sandbox ${sandbox})`, async () => {
      hits = 0;
      const place = await openTestWorkspace(sandbox, port(proxy));
      const target = {
        ...{ pid: victim.pid, address: 0, secret: join(folder, 'other', 'secret'), port: port(canary) },
        ...{ socket: join(folder, 'gateway'), proxy: Number(URL.parse(place.proxy)?.port) },
      };
      const { lines, stderr } = await place.python(attacks, JSON.stringify(target));
      await place.stop();
      const told = lines.map((line) => JSON.parse(line) as [string, unknown, string?]);
      expect(
        told.filter(([, worked]) => worked === true).map(([name]) => name),
        stderr,
      ).to.have.members(allowed);
      expect(told).to.have.lengthOf(20);
      expect(told.at(-1)?.[1]).to.have.members(['HOME', 'LC_CTYPE', 'PATH', 'PWD']);
      expect(hits).to.equal(0);
      expect(victim.exitCode).to.equal(null);
    });

    it(`leaves no process, not even one that left its group (sandbox ${sandbox})`, async () => {
      const place = await openTestWorkspace(sandbox, port(proxy));
      const { lines } = await place.python(`
import os, subprocess
quick = subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=subprocess.DEVNULL)
print(os.getcwd())
`);
      expect(lines).to.deep.equal([place.folder]);
      await place.stop();
      expect(existsSync(place.root)).to.equal(false);
      expect(processesOf(place.folder)).to.deep.equal([]);
    });
  }
});

describe('A workspace', () => {
  const withPlace = async (look: (place: TestWorkspace) => Promise<void>) => {
    const place = await openTestWorkspace('user', 1);
    try {
      await look(place);
    } finally {
      await place.stop();
    }
  };

  it('is closed to other users', () =>
    withPlace(async ({ root }) => {
      const [home = ''] = readdirSync(root);
      const { code } = await new Promise<{ code: number | null }>((resolve) => {
        const child = spawn('setpriv', [
          '--reuid=65534',
          '--regid=65534',
          '--clear-groups',
          'ls',
          join(root, home, 'job'),
        ]);
        child.once('close', (code) => resolve({ code }));
      });
      expect(code).to.equal(2);
    }));

  it('runs its children as a user of their own, never as root', () =>
    withPlace(async ({ python }) => {
      const { lines } = await python(
        'import os; print(os.getuid() >= 2_000_000_000, os.getgid() == os.getuid(), os.getgroups())',
      );
      expect(lines).to.deep.equal(['True True []']);
    }));

  it('hides the processes of the machine from its children', () =>
    withPlace(async ({ python }) => {
      const { lines } = await python(
        "import os; print(len([name for name in os.listdir('/proc') if name.isdigit()]) < 6)",
      );
      expect(lines).to.deep.equal(['True']);
    }));
});

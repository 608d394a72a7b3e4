import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { inspectionMemoryBytes } from '../../src/base/resource-limits.ts';
import { spawnChild } from '../../src/media/spawn-child.ts';
import { startEgressForwarder } from '../../src/worker/egress-forwarder.ts';
import { programFolders, sandboxCommand } from '../../src/worker/sandbox-command.ts';
import { endingOf } from '../../src/worker/sandbox-ending.ts';
import { aFolder } from '../support/redis.ts';
import { programs } from '../support/worker.ts';

/** Holds two connections to each port and tells how many are served. */
const connectAll = `
import socket, sys
held = []
for port in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
    for n in range(2):
        held.append(socket.create_connection(('127.0.0.1', port), 10))
        held[-1].sendall(b'x')
print(sum(one.recv(1) == b'y' for one in held))
`;

describe('The port-forwarder of a sandbox', () => {
  it('serves 128 ports within the memory limit of one inspection', async () => {
    const { folder: root, remove } = aFolder();
    const [folder, sockets] = [join(root, 'own'), join(root, 'egress')];
    mkdirSync(folder);
    mkdirSync(sockets);
    const egress = createServer((socket) => socket.on('error', () => undefined).on('data', () => socket.write('y')));
    egress.listen(0, '127.0.0.1');
    await once(egress, 'listening');
    const to = { host: '127.0.0.1', port: (egress.address() as AddressInfo).port };
    const { ports, close } = await startEgressForwarder({ to, folder: sockets, ports: 128, maxConnections: 2 });
    const { python } = programs;
    const limits = { memoryBytes: inspectionMemoryBytes, cpuSeconds: 60, processes: 2000 };
    const [program = '', ...args] = sandboxCommand(
      [python, '-I', '-c', connectAll, String(ports[0]), String(ports.at(-1))],
      {
        ...{ sandbox: 'namespace', folder, readable: programFolders([python]), user: 0, python },
        ...{ route: { ports, sockets, maxConnections: 2 }, filter: null, cgroup: null },
        limits: { ...limits, fileBytes: 2 ** 20, folderBytes: 2 ** 20 },
      },
    );
    const lines: string[] = [];
    const { signal } = new AbortController();
    const options = { folder, env: { PATH: '/usr/bin:/bin' }, signal, onLine: (line: string) => lines.push(line) };
    const { stderr } = await spawnChild(program, args, options, endingOf('namespace')).ended;
    expect({ lines, stderr }).to.deep.equal({ lines: ['256'], stderr: '' });
    await close();
    egress.close();
    remove();
  });
});

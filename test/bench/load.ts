import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';

/** A server in a process of its own. */
export interface Served {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts api-server.ts in one of its modes. */
export async function serve(...args: string[]): Promise<Served> {
  const script = join(import.meta.dirname, 'api-server.ts');
  const child: ChildProcess = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  return {
    port: Number(line.toString()),
    pid: child.pid!,
    async stop() {
      child.stdin!.end();
      await once(child, 'exit');
    },
  };
}

/** CPU microseconds that a process has used. */
export function cpuMicros(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // In ticks of 10 ms on Linux, whatever the kernel's own rate.
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

/** Sends the same request over many connections, one at a time on each; answers how long it took. */
export async function load(port: number, request: string, connections: number, requests: number): Promise<number> {
  const began = performance.now();
  let left = requests;
  const lane = async () => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.setNoDelay(true);
    while (left-- > 0) await exchange(socket, request);
    socket.destroy();
  };
  await Promise.all(Array.from({ length: connections }, lane));
  return performance.now() - began;
}

/** One request and its whole answer, told by its content-length. */
function exchange(socket: Socket, request: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let seen = '';
    const read = (chunk: Buffer) => {
      seen += chunk.toString('latin1');
      const end = seen.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(seen.slice(0, end))?.[1] ?? 0);
      if (seen.length < end + 4 + length) return;
      socket.off('data', read);
      if (/^HTTP\/1\.1 2/.test(seen)) resolve();
      else reject(new Error(seen.slice(0, 300)));
    };
    socket.on('data', read);
    socket.write(request);
  });
}

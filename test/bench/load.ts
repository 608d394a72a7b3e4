import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** A server in a process of its own. */
export interface ServerProcess {
  readonly port: number;
  readonly pid: number;
  /** Bytes of its heap and its buffers that are in use, after a collection of garbage. */
  usedBytes(): Promise<number>;
  stop(): Promise<void>;
}

/** A GET that is sent again and again. */
export interface LoadRequest {
  readonly path: string;
  readonly key: string;
}

/** Servers have a processor to themselves, and all that they talk to has another: as if they stood on another machine. */
const [ofServer, ofOthers] = ['0', '1'];
const run = promisify(execFile);

/** Starts api-server.ts in one of its modes. */
export async function serve(...args: string[]): Promise<ServerProcess> {
  const script = join(import.meta.dirname, 'api-server.ts');
  const command = ['--cpu-list', ofServer, process.execPath, '--expose-gc', script, ...args];
  const child: ChildProcess = spawn('taskset', command, { stdio: ['pipe', 'pipe', 'inherit'] });
  const readNumber = async () => Number(String((await once(child.stdout!, 'data'))[0]));
  return {
    port: await readNumber(),
    pid: child.pid!,
    usedBytes: () => {
      child.stdin!.write('\n');
      return readNumber();
    },
    async stop() {
      child.stdin!.end();
      await once(child, 'exit');
    },
  };
}

/** Keeps a process, all its threads, away from the processor of the server. */
export async function keepAside(pid: number): Promise<void> {
  await run('taskset', ['--all-tasks', '--cpu-list', '--pid', ofOthers, String(pid)]);
}

/** Refuses when the programs that make the load are not there. */
export async function checkLoad(): Promise<void> {
  if (process.platform !== 'linux') throw new Error('this bench reads /proc, so it needs Linux');
  await run('which', ['wrk', 'taskset']).catch(() => {
    throw new Error('this bench needs wrk and taskset: apt-get install wrk util-linux');
  });
}

/** Asks the same over many connections, one at a time on each, as fast as it is answered; answers how often that was. */
export async function load(
  port: number,
  { path, key }: LoadRequest,
  connections: number,
  seconds: number,
): Promise<{ requests: number; perSecond: number }> {
  const wrk = ['wrk', '--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`];
  const question = ['--header', `x-api-key: ${key}`, `http://127.0.0.1:${port}${path}`];
  const { stdout } = await run('taskset', ['--cpu-list', ofOthers, ...wrk, ...question]);
  if (/Non-2xx|Socket errors/.test(stdout))
    throw new Error(`not every request was answered as it should be: ${stdout}`);
  const read = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1]);
  return { requests: read(/(\d+) requests in/), perSecond: read(/Requests\/sec: +([\d.]+)/) };
}

/** CPU microseconds that a process has used, as its threads' schedstat tells in nanoseconds. */
export function cpuMicros(pid: number): number {
  const spent = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return spent.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1000;
}

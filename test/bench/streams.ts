import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { cpuMicros, type LoadRequest, type ServerProcess } from './load.ts';

const watchSeconds = 20;

/** Holds many idle event streams open: what each costs in memory, and what all cost in CPU while nothing happens. */
export async function holdStreams(
  server: ServerProcess,
  questions: readonly LoadRequest[],
  many: number,
): Promise<{ kilobytes: number; percent: number }> {
  const before = await server.usedBytes();
  const sockets: Socket[] = [];
  try {
    for (let n = 0; n < many; n += questions.length) {
      sockets.push(...(await Promise.all(questions.map((question) => open(server.port, question)))));
    }
    const kilobytes = ((await server.usedBytes()) - before) / 1024 / many;
    const cpu = cpuMicros(server.pid);
    await pause(watchSeconds * 1000);
    return { kilobytes, percent: ((cpuMicros(server.pid) - cpu) / 1e6 / watchSeconds) * 100 };
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

/** A stream whose first event has come. */
async function open(port: number, { path, key }: LoadRequest): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\n\r\n`);
  let seen = '';
  while (!seen.includes('event: progress')) seen += String((await once(socket, 'data'))[0]);
  socket.resume();
  return socket;
}

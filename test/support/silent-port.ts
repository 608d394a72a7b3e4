import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';

export interface SilentPort {
  readonly url: string;
  stop(): Promise<void>;
}

/** Connections that Linux queues for a listener with a backlog of 1. */
const queued = 2;
const program = `
const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  require('node:fs').writeSync(1, String(server.address().port));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});`;

/** A port that answers no packet, as behind a network policy: its listener accepts nothing and its queue of connections is full. */
export async function startSilentPort(): Promise<SilentPort> {
  const listener = spawn(process.execPath, ['--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = await once(listener.stdout, 'data');
  const waiting = Array.from({ length: queued }, () => connect(Number(port), '127.0.0.1'));
  await Promise.all(waiting.map((wire) => once(wire, 'connect')));
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      for (const wire of waiting) wire.destroy();
      listener.kill('SIGKILL');
      await once(listener, 'close');
    },
  };
}

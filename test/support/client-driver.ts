import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { BatchRequest } from '../../clients/typescript/src/trawl.ts';
import { root } from './tree.ts';

/** One thing that a client of callers is to do. */
export interface ClientCommand {
  readonly verb: 'download' | 'abort' | 'fail' | 'refuse' | 'start' | 'wait' | 'metadata' | 'jobs' | 'batch' | 'verify';
  readonly service: { readonly url: string; readonly key: string; readonly patienceSeconds: number };
  readonly url: string;
  readonly parameters?: Readonly<Record<string, string | boolean>>;
  readonly idempotencyKey?: string;
  /** Jobs to wait for, all at once. */
  readonly jobIds?: readonly string[];
  readonly post?: WebhookPost;
  readonly batch?: BatchRequest;
}

export interface WebhookPost {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly secret: string | readonly string[];
  readonly now: number;
}

export interface ClientOutcome {
  readonly value?: unknown;
  readonly error?: {
    readonly code: string;
    readonly blame: string;
    readonly retryable: boolean;
    readonly status: number | null;
    readonly job_id: string | null;
    readonly sentence: string;
  };
}

/** A process that carries out commands with one client, one after another. */
export interface ClientDriver {
  readonly run: (command: ClientCommand) => Promise<ClientOutcome>;
  /** Interrupts the command that runs, as Ctrl-C does. */
  readonly interrupt: () => void;
  readonly stop: () => Promise<void>;
}

export const clientNames = ['typescript', 'python', 'python async'] as const;
export type ClientName = (typeof clientNames)[number];

/** The Python into which .ci/setup has installed what the Python client needs. */
export function clientPython(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '', '.cache');
  const list = readFileSync(join(root, 'test/clients/requirements.txt'));
  return join(cache, 'trawl', 'venv', hash('sha256', list).slice(0, 16), 'bin', 'python3');
}

export const clientPythonPath = join(root, 'clients/python');

export function startClientDriver(name: ClientName, settings: Readonly<Record<string, string>> = {}): ClientDriver {
  const folder = join(root, 'test/clients');
  const [command, ...args] =
    name === 'typescript'
      ? [process.execPath, join(folder, 'typescript-driver.ts')]
      : [clientPython(), '-B', join(folder, 'python-driver.py'), name === 'python' ? 'sync' : 'async'];
  const env = { ...process.env, ...settings, PYTHONPATH: clientPythonPath };
  const child = spawn(command!, args, { stdio: ['pipe', 'pipe', 'pipe'], env });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (said += text));
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => (said += error.message)).once('close', () => resolve());
  });
  child.stdin.on('error', () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    run: async (asked) => {
      child.stdin.write(`${JSON.stringify(asked)}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`the ${name} client ended: ${said}`);
      return JSON.parse(value) as ClientOutcome;
    },
    interrupt: () => void child.kill('SIGINT'),
    stop: async () => {
      child.stdin.end();
      child.kill();
      await ended;
    },
  };
}

import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openProcessRunner } from '../../src/runners/process-runner.ts';
import { spawnRedis, whenReady } from '../../src/store/redis/redis-process.ts';
import { aLog } from './redis.ts';

/** Starts a child while this process can open no file, and again when it can; prints how both went. */
const told = process.argv[2] === 'redis' ? await startRedisTwice() : await startWorkerTwice();
process.stdout.write(told);

async function startWorkerTwice(): Promise<string> {
  const runner = openProcessRunner({
    command: ['/bin/cat'],
    env: {},
    tokenOf: () => 'token',
    freeBytes: () => 1e9,
    log: aLog().log,
  });
  const attempt = { name: 'job-1', jobId: 'job', attempt: 1, maxMs: 600_000 } as const;
  const release = openAll();
  const refused = await runner.start(attempt).catch(({ code }: NodeJS.ErrnoException) => code);
  const before = await runner.see(attempt.name);
  release();
  await runner.start(attempt);
  const after = await runner.see(attempt.name);
  await runner.close();
  return `${refused} ${before.is} ${after.is}`;
}

async function startRedisTwice(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-full-'));
  const start = () => spawnRedis(folder, ['--port', '0', '--unixsocket', 'redis.sock', '--logfile', 'redis.log']);
  const release = openAll();
  const refused = await start().ended;
  release();
  const server = start();
  await whenReady(server, join(folder, 'redis.sock'));
  await server.stop();
  rmSync(folder, { recursive: true });
  return `${refused}, ${await server.ended}`;
}

/** Opens files until the limit of this process is reached; returns what closes them. */
function openAll(): () => void {
  const opened: number[] = [];
  try {
    for (;;) opened.push(openSync('/dev/null', 'r'));
  } catch {
    // The limit is reached.
  }
  return () => {
    for (const file of opened) closeSync(file);
  };
}

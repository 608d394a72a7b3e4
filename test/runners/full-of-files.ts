import { closeSync, openSync } from 'node:fs';
import { openProcessRunner } from '../../src/runners/process-runner.ts';
import { aLog } from '../support/redis.ts';

/** Starts a worker while this process can open no file, and again when it can; prints how both went. */
const runner = openProcessRunner({ command: ['/bin/cat'], env: {}, tokenOf: () => 'token', log: aLog().log });
const attempt = { name: 'job-1', jobId: 'job', attempt: 1, endpoint: 'video', deadline: Date.now() } as const;
const opened: number[] = [];
try {
  for (;;) opened.push(openSync('/dev/null', 'r'));
} catch {
  // The limit of this process is reached.
}
const refused = await runner.start(attempt).catch(({ code }: NodeJS.ErrnoException) => code);
const before = await runner.see(attempt.name);
for (const file of opened) closeSync(file);
await runner.start(attempt);
const after = await runner.see(attempt.name);
await runner.close();
process.stdout.write(`${refused} ${before.is} ${after.is}`);

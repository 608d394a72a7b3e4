import { startProxy } from './proxy.ts';
import { startWorker, type TestWorkerOptions } from './worker.ts';

/**
 * A part of a job in a process of its own, so that it can be killed: `proxy HOST` prints its URL, `parent OPTIONS` starts a
 * worker as a runner does and prints its id.
 */
const [part, argument = ''] = process.argv.slice(2);
if (part === 'proxy') {
  const { url } = await startProxy((host) => host === argument);
  console.log(url);
} else {
  const worker = startWorker(JSON.parse(argument) as TestWorkerOptions);
  console.log(worker.process.pid);
  const { code } = await worker.exit;
  process.stderr.write(worker.stderr());
  process.exitCode = code ?? 1;
}

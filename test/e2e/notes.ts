import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { ChartGround } from '../support/cluster/chart-ground.ts';
import { freePort } from '../support/free-port.ts';
import { tool } from '../support/tools.ts';
import { until } from '../support/until.ts';

const address = '127.0.0.1:8080';

/** Types the commands that Helm's notes print as a person would, with another port, and returns what the last one prints. */
export async function followNotes(ground: ChartGround, said: string): Promise<string> {
  const [account = '', forward = '', ...rest] = said
    .split('\n')
    .flatMap((line) => /^ {3}((?:KEY|job)=.*|kubectl .*|curl .*)$/.exec(line)?.[1] ?? []);
  const port = await freePort();
  const env = {
    PATH: `${dirname(tool('kubectl'))}:${process.env.PATH}`,
    KUBECONFIG: ground.cluster.kubeconfig,
    KUBECACHEDIR: '/dev/null',
  };
  const download = rest.join('\n').replaceAll(address, `127.0.0.1:${port}`);
  const way = spawn('sh', ['-c', `exec ${forward.replace(' 8080:', ` ${port}:`)}`], { env, stdio: 'ignore' });
  try {
    await until(() => answers(way, port), 60, 'the port is forwarded');
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', `${account}\n${download}`], {
      env,
    });
    return stdout;
  } finally {
    const end = new Promise((resolve) => way.once('exit', resolve));
    way.kill();
    await end;
  }
}

async function answers(way: ChildProcess, port: number): Promise<boolean> {
  if (way.exitCode !== null) throw new Error(`kubectl port-forward ended with ${way.exitCode}`);
  return fetch(`http://127.0.0.1:${port}/healthz`).then(
    () => true,
    () => false,
  );
}

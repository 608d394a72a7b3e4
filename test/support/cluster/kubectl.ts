import { execFile } from 'node:child_process';
import { tool } from '../tools.ts';

/** A way into a cluster: what KUBECONFIG would name. */
export interface Kubeconfig {
  readonly kubeconfig: string;
}

/** Runs kubectl `input` on its standard input, and answers what it printed; throws what it complained of. */
export function kubectl({ kubeconfig }: Kubeconfig, words: readonly string[], input: unknown = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, stdout: string, stderr: string) =>
      error ? reject(new Error(`kubectl ${words.join(' ')}: ${stderr || error.message}`)) : resolve(stdout.trimEnd());
    // Without a home it keeps no cache of what it discovers, which a test would leave behind.
    const env = { PATH: process.env.PATH, KUBECONFIG: kubeconfig, KUBECACHEDIR: '/dev/null' };
    const child = execFile(tool('kubectl'), [...words], { env, maxBuffer: 2 ** 26 }, done);
    child.stdin?.end(typeof input === 'string' ? input : JSON.stringify(input));
  });
}

/** Creates or changes objects as `kubectl apply` does. */
export async function apply(cluster: Kubeconfig, ...objects: readonly object[]): Promise<void> {
  await kubectl(cluster, ['apply', '-f', '-'], { apiVersion: 'v1', kind: 'List', items: objects });
}

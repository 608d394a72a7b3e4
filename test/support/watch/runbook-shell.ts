import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { namespace } from '../cluster/testbed.ts';
import { renderRedisPod } from '../redis-pod.ts';
import { tool } from '../tools.ts';
import { read, root } from '../tree.ts';
import type { DrillGround } from './drill-ground.ts';

export interface CommandRun {
  readonly line: string;
  readonly code: number;
  readonly said: string;
}

/** Returns the lines of the blocks of a runbook in a language. */
export function blocksOf(alert: string, language: 'sh' | 'promql'): string[] {
  const blocks = read(`docs/runbooks/${alert}.md`).matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'));
  return [...blocks].flatMap(([, text]) => text!.trim().split('\n'));
}

/**
 * Runs the commands of a runbook in a shell in which `trawl` has the settings of the controller, and `kubectl` is the real one, except
 * that the logs of a part, and programs in a pod of Redis, are those of this machine.
 */
export async function runRunbook(
  ground: DrillGround,
  alert: string,
  names: { readonly job: string; readonly account: string },
): Promise<CommandRun[]> {
  const bin = join(ground.folder, 'bin');
  mkdirSync(bin, { recursive: true });
  const put = (name: string, text: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  for (const role of ['api', 'controller', 'egress'] as const)
    writeFileSync(join(ground.folder, `${role}.log`), ground.outputOf(role));
  put('trawl', `exec '${join(root, 'trawl')}' "$@"`);
  put(
    'kubectl',
    `case "$1 $2 $3" in
'logs --selector app.kubernetes.io/component='*) exec cat '${ground.folder}'/"\${3#*=}".log ;;
'exec statefulset/trawl-redis '*) shift 3; program=$1; shift; ${intoRedisPod(ground.testbed.redis.url)} ;;
esac
export KUBECONFIG='${ground.testbed.cluster.kubeconfig}' KUBECACHEDIR=/dev/null
exec '${tool('kubectl')}' "$@"`,
  );
  const env = { ...ground.env, PATH: `${bin}:${process.env.PATH}` };
  const runs: CommandRun[] = [];
  for (const written of blocksOf(alert, 'sh')) {
    const line = written
      .replaceAll('JOB', names.job)
      .replaceAll('ACCOUNT', names.account)
      .replaceAll('trawl-workers', namespace);
    runs.push(await runLine(line, env));
  }
  return runs;
}

/** The Redis of the drills wants no password: that of the pod must be there, and is left out. */
function intoRedisPod(url: string): string {
  const { programs, env } = renderRedisPod();
  if (env.REDISCLI_AUTH === undefined) return 'echo "NOAUTH Authentication required." >&2; exit 126';
  const known = programs.join(' | ');
  return `case "$program" in ${known}) exec "$program" -u '${url}' "$@" ;; *) echo "$program: not in the image" >&2; exit 127 ;; esac`;
}

function runLine(line: string, env: NodeJS.ProcessEnv): Promise<CommandRun> {
  return new Promise((resolve) => {
    execFile('/bin/sh', ['-c', line], { env, timeout: 60_000, maxBuffer: 2 ** 26 }, (error, out, err) => {
      resolve({ line, code: Number(error?.code ?? (error ? 124 : 0)), said: out + err });
    });
  });
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tool } from '../tools.ts';
import type { Kubeconfig } from './kubectl.ts';

/** A recorder of every state of the objects that a cluster stored in a namespace. */
export interface ObjectRecorder {
  /** All of it up to now, every state of every object. */
  recorded(): string;
  stop(): Promise<void>;
}

/** Begins to write down all that is stored of Jobs, their pods and events. */
export function recordObjects({ kubeconfig }: Kubeconfig, namespace: string): ObjectRecorder {
  let said = '';
  const env = { PATH: process.env.PATH, KUBECONFIG: kubeconfig, KUBECACHEDIR: '/dev/null' };
  const children = ['jobs', 'pods', 'events'].map((kind): ChildProcess => {
    const words = ['get', kind, '--namespace', namespace, '--watch', '--output', 'json'];
    const child = spawn(tool('kubectl'), words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    return child;
  });
  return {
    recorded: () => said,
    stop: async () => {
      for (const child of children) {
        const gone = once(child, 'exit');
        if (child.kill('SIGKILL')) await gone;
      }
    },
  };
}

import { setTimeout as pause } from 'node:timers/promises';
import type { DrillGround } from './drill-ground.ts';

/** Calls and jobs of one caller, without end. */
export interface DrillLoad {
  /** Ids of accepted jobs. */
  readonly jobs: readonly string[];
  stop(): Promise<void>;
}

const everyMs = 1_000;

/** Every second asks for the usage, and begins a job that wants a webhook. */
export function startLoad({ api, key, receiver }: Pick<DrillGround, 'api' | 'key' | 'receiver'>): DrillLoad {
  const ending = new AbortController();
  const jobs: string[] = [];
  const hook = encodeURIComponent(`http://receiver.test:${new URL(receiver.url).port}/hook`);
  const ask = async (path: string) => {
    // A part may be away: that is what a drill is about.
    const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(5_000)]);
    const answer = await fetch(api.url + path, { headers: { 'x-api-key': key }, signal }).catch(() => null);
    return answer?.status === 202 ? ((await answer.json()) as { job_id: string }).job_id : null;
  };
  const run = async () => {
    for (let n = 0; !ending.signal.aborted; n++) {
      const film = encodeURIComponent(`http://source.test/films/${n}.mp4`);
      void ask('/v1/usage');
      void ask(`/v1/video/download?query=${film}&webhook_url=${hook}`).then((id) => id && jobs.push(id));
      await pause(everyMs, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    jobs,
    stop: async () => {
      ending.abort();
      await running;
    },
  };
}

import { setTimeout as pause } from 'node:timers/promises';
import type { Json } from './json.ts';
import type { Receiver } from './receiver.ts';
import type { Service } from './service.ts';
import { until } from './until.ts';

interface LoadOptions {
  readonly service: Service;
  readonly key: string;
  readonly film: string;
  readonly receiver: Receiver;
}

/** Callers of a service who never rest. */
export interface ServiceLoad {
  /** Ids of jobs that were admitted. */
  readonly jobs: readonly string[];
  /** Links to files, oldest first. */
  readonly links: readonly string[];
  /** Answers that no caller should get. */
  readonly complaints: readonly string[];
  /** Waits until a job that is admitted from now on has ended, and its file was read. */
  another(): Promise<void>;
  /** Ends it once each admitted job has ended and its webhook has arrived. */
  stop(): Promise<void>;
}

const callers = 2;
const pollMs = 100;

/** Lets callers download one film after the other, follow each job to its file, and read files of before again. */
export function startLoad({ service, key, film, receiver }: LoadOptions): ServiceLoad {
  const [jobs, links, complaints, done]: [string[], string[], string[], Set<string>] = [[], [], [], new Set()];
  const query = `query=${encodeURIComponent(film)}&webhook_url=${encodeURIComponent(`${receiver.url}/hook`)}`;
  let isStopping = false;
  const get = async (url: string, wanted: number): Promise<Response> => {
    const answer = await fetch(url, { headers: { 'x-api-key': key } });
    if (answer.status !== wanted) throw new Error(`${url.slice(0, 90)}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const at = (path: string) => service.up().url + path;
  const read = async (link: string) => (await (await get(link, 200)).arrayBuffer()).byteLength;
  const finish = async (id: string): Promise<Json> => {
    for (;;) {
      const job = (await (await get(at(`/v1/jobs/${id}`), 200)).json()) as Json;
      if (job.completed_at !== null) return job;
      await pause(pollMs);
    }
  };
  const callOnce = async () => {
    const { job_id: id } = (await (await get(at(`/v1/video/download?${query}`), 202)).json()) as Json;
    jobs.push(id);
    const job = await finish(id);
    if (job.status !== 'CompletedJob') throw new Error(`${id} ended as ${job.status}: ${job.error}`);
    const link: string = job.result.response;
    if ((await read(link)) !== job.result.bytes) throw new Error(`the file of ${id} is cut`);
    links.push(link);
    await read(links[Math.floor(links.length / 2)]!);
    done.add(id);
  };
  const caller = async () => {
    while (!isStopping) {
      await callOnce().catch(async (error: Error) => {
        complaints.push(`${new Date().toISOString()} ${error.message} ${error.cause ?? ''}`);
        await pause(pollMs);
      });
    }
  };
  const ended = Promise.all(Array.from({ length: callers }, caller));
  return {
    jobs,
    links,
    complaints,
    another: async () => {
      const before = jobs.length;
      const isDone = () => jobs.slice(before).some((id) => done.has(id));
      await until(isDone, 60, `one more job of ${before}`).catch((error: Error) => {
        throw new Error(`${error.message}: ${complaints}`);
      });
    },
    stop: async () => {
      isStopping = true;
      await ended;
      const isTold = () => jobs.every((id) => receiver.of(id).length > 0);
      await until(isTold, 30, 'each job has its webhook');
    },
  };
}

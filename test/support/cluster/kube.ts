import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { createInterface } from 'node:readline';
import type { Certificate } from '../certificate.ts';
import type { Json } from '../json.ts';

/** A plain client of an API server for tests: it neither retries nor limits itself. */
export interface Kube {
  readonly url: string;
  /** The answer to one request; throws a KubeError for any status but 2xx. A patch is a strategic merge patch. */
  ask<T = Json>(method: string, path: string, body?: object, type?: string): Promise<T>;
  /** The events of a watch until it ends, is aborted, or fails. */
  watch<T>(path: string, signal: AbortSignal): AsyncGenerator<{ type: string; object: T }>;
  close(): void;
}

export class KubeError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const patientSeconds = 30;

/** Connects as the owner of a certificate. */
export function openKube(url: string, ca: string, owner: Certificate): Kube {
  const agent = new Agent({ ca, ...owner, keepAlive: true, maxSockets: 32 });
  const streams = new Agent({ ca, ...owner });
  return {
    url,
    ask: async (method, path, body, type) => {
      const signal = AbortSignal.timeout(patientSeconds * 1000);
      const text = await readAll(await send(agent, url + path, { method, body, type, signal }));
      return text.startsWith('{') ? JSON.parse(text) : text;
    },
    watch: async function* (path, signal) {
      const answer = await send(streams, url + path, { method: 'GET', signal });
      try {
        for await (const line of createInterface({ input: answer })) yield JSON.parse(line);
      } finally {
        answer.destroy();
      }
    },
    close: () => {
      agent.destroy();
      streams.destroy();
    },
  };
}

interface Sent {
  readonly method: string;
  readonly body?: object | undefined;
  readonly type?: string | undefined;
  readonly signal: AbortSignal;
}

async function send(agent: Agent, url: string, { method, body, type, signal }: Sent): Promise<IncomingMessage> {
  const kind = type ?? (method === 'PATCH' ? 'application/strategic-merge-patch+json' : 'application/json');
  const text = body && JSON.stringify(body);
  // Node gives the body of a DELETE no length by itself.
  const about = text === undefined ? {} : { 'content-type': kind, 'content-length': Buffer.byteLength(text) };
  const headers = { accept: 'application/json', ...about };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const asking = request(url, { agent, method, headers, signal }, resolve).on('error', reject);
    asking.end(text);
  });
  const status = answer.statusCode ?? 0;
  if (status < 200 || status > 299) {
    throw new KubeError(status, `${method} ${url}: ${status} ${await readAll(answer)}`);
  }
  return answer;
}

async function readAll(answer: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of answer.setEncoding('utf8')) text += piece;
  return text;
}

import { request } from 'node:http';
import { type FailureCode, failures, isFailureCode, refuse } from '../base/errors.ts';
import { type Metadata, readMetadata } from '../model/metadata.ts';

/** What the inspector found at a URL. */
export type Inspected = { readonly metadata: Metadata } | { readonly failure: FailureCode; readonly text: string };

/** Asks what is known of a media URL. The API itself never opens an address that a caller named. */
export interface Inspector {
  /** Ends early when the signal does; refuses with `unavailable` when the inspector cannot take more. */
  inspect(url: string, signal: AbortSignal): Promise<Inspected>;
}

const answerBytesMax = 1024 * 1024;

/** The inspector behind a UNIX socket, or behind host and port. */
export function askInspector(place: { socketPath: string } | { host: string; port: number }): Inspector {
  return {
    async inspect(url, signal) {
      const { status, body } = await post(place, JSON.stringify({ url }), signal);
      if (status === 503) throw refuse('unavailable');
      return readAnswer(body);
    },
  };
}

function readAnswer(body: string): Inspected {
  const answer: unknown = JSON.parse(body);
  if (typeof answer === 'object' && answer !== null) {
    const { metadata, failure } = answer as { metadata?: unknown; failure?: { code?: unknown; text?: unknown } };
    const read = metadata === undefined ? null : readMetadata(metadata);
    if (read !== null) return { metadata: read };
    if (typeof failure === 'object' && failure !== null) {
      const code = isFailureCode(failure.code) ? failure.code : 'unclassified';
      return { failure: code, text: typeof failure.text === 'string' ? failure.text : failures[code].sentence };
    }
  }
  throw new Error('the inspector answered something else');
}

function post(place: object, body: string, signal: AbortSignal): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const asked = request({ ...place, path: '/inspect', method: 'POST', headers, signal, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      res.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > answerBytesMax) asked.destroy(new Error('the inspector answered too much'));
        else chunks.push(chunk);
      });
      res.on('end', () => resolve({ status: res.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
      res.on('error', reject);
    });
    asked.on('error', (error: NodeJS.ErrnoException) => {
      // Nobody listens there: it is starting again, or not started yet.
      const isAway = error.code === 'ENOENT' || error.code === 'ECONNREFUSED';
      reject(isAway ? Object.assign(refuse('unavailable'), { cause: error }) : error);
    });
    asked.end(body);
  });
}

import { request } from 'node:http';
import { refuse } from './errors.ts';

/** Where a server of ours listens. */
export type Address = { readonly socketPath: string } | { readonly host: string; readonly port: number };

const answerBytesMax = 1024 * 1024;

/** Posts JSON to a server of ours; refuses with `unavailable` when nobody listens there. */
export function postJson(
  to: Address,
  path: string,
  value: unknown,
  signal: AbortSignal,
): Promise<{ status: number; text: string }> {
  const body = JSON.stringify(value);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const asked = request({ ...to, path, method: 'POST', headers, signal, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      res.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > answerBytesMax) asked.destroy(new Error('the answer is too large'));
        else chunks.push(chunk);
      });
      res.on('end', () => resolve({ status: res.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
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

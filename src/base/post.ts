import { request } from 'node:http';
import { refuse } from './errors.ts';
import type { Address as Written } from './kinds.ts';

/** Where a server of ours listens. */
export type Address = { readonly socketPath: string } | { readonly host: string; readonly port: number };

/** The way to an address as it is written in a setting. */
export function wayTo(address: Written): Address {
  return 'path' in address ? { socketPath: address.path } : address;
}

/** Nobody listens there, or there is no way: it is starting again, or not started yet. */
const awayCodes = ['ENOENT', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'];
const answerBytesMax = 1024 * 1024;

/** Whether a server of ours ended before it had answered. */
export function hasBrokenOff(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return code === 'ECONNRESET' || code === 'EPIPE';
}

/** Posts JSON to a server of ours; refuses with `unavailable` when it cannot be reached. */
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
      const isAway = awayCodes.includes(error.code ?? '');
      reject(isAway ? Object.assign(refuse('unavailable'), { cause: error }) : error);
    });
    asked.end(body);
  });
}

import type { IncomingMessage } from 'node:http';
import { refuse } from '../base/errors.ts';

export const bodyBytesMax = 16 * 1024;

/** What a request carries besides its query: parameters, or a sentence that says what is wrong with the body. */
export type Body = { readonly parameters: Readonly<Record<string, unknown>> } | { readonly fault: string };

const notObject = 'Bad Request: the body must be a JSON object';

/** Reads the body of a POST; refuses one above 16 KiB before it is whole. */
export async function readBody(req: IncomingMessage): Promise<Body> {
  if (Number(req.headers['content-length'] ?? 0) > bodyBytesMax) throw refuse('payload_too_large');
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw refuse('payload_too_large');
    chunks.push(chunk);
  }
  if (bytes === 0) return { parameters: {} };
  if (!isJson(req.headers['content-type']))
    return { fault: 'Bad Request: the body must be of type application/json in UTF-8' };
  return parse(Buffer.concat(chunks));
}

function parse(bytes: Buffer): Body {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    // Whatever is wrong with it, the caller is told the same.
    return { fault: notObject };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { fault: notObject };
  return { parameters: value as Record<string, unknown> };
}

function isJson(type: string | undefined): boolean {
  const [kind = '', ...parameters] = (type ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  return (
    kind === 'application/json' &&
    parameters.every((one) => !one.startsWith('charset=') || /^charset="?utf-?8"?$/.test(one))
  );
}

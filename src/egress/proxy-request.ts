import type { IncomingMessage } from 'node:http';
import { proxyVerdictHeader } from '../base/egress-verdict.ts';
import type { Target } from './connector.ts';

/** Headers of one connection only, those that frame a body, and those that a proxy answers itself (RFC 9110, 7.6.1). */
const hopHeaders = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export interface PlainTarget extends Target {
  readonly path: string;
  /** The host as its server knows it. */
  readonly authority: string;
}

/** Reads the absolute form `http://host/path` of a request; null when it is not one. */
export function readPlainTarget(text: string): PlainTarget | null {
  const url = /^http:\/\/[^/]/i.test(text) ? URL.parse(text) : null;
  if (url === null || url.username !== '' || url.password !== '') return null;
  const port = url.port === '' ? 80 : Number(url.port);
  return port > 0 ? { host: url.hostname, port, path: url.pathname + url.search, authority: url.host } : null;
}

/** Reads the `host:port` of a CONNECT; null when it is not one. */
export function readTunnelTarget(text: string): Target | null {
  const [, name, digits] = /^(\[[\da-f:.]+\]|[^\s:/?#@[\]\\]+):(\d{1,5})$/i.exec(text) ?? [];
  const host = name === undefined ? undefined : URL.parse(`http://${name}/`)?.hostname;
  const port = Number(digits);
  return host && port > 0 && port <= 65_535 ? { host, port } : null;
}

/** Returns the headers that frame the body; null when they contradict each other or name a coding that is not passed on. */
export function readFraming({ headers }: IncomingMessage): readonly string[] | null {
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  if (coding !== undefined) {
    return length === undefined && coding.toLowerCase() === 'chunked' ? ['Transfer-Encoding', 'chunked'] : null;
  }
  return length === undefined ? [] : ['Content-Length', length];
}

/** The headers of a message that its other side may see, as name, value, name, value. */
export function endToEndHeaders(rawHeaders: readonly string[], connection: string | undefined): string[] {
  const named = new Set(connection?.toLowerCase().split(/[\s,]+/));
  const kept: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2);
    const word = name.toLowerCase();
    const hidden = hopHeaders.has(word) || named.has(word) || word.startsWith('proxy-') || word === proxyVerdictHeader;
    if (!hidden) kept.push(name, value);
  }
  return kept;
}

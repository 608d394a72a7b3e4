import type { IncomingMessage } from 'node:http';

const parametersMost = 1000;
const longestSure = 2 * parametersMost;

/** A target as a server is asked for it: one that names scheme and host, as for a proxy, means this server too. */
export function plainTarget(target: string): string {
  const rest = /^https?:\/\/[^/?#]*(.*)$/is.exec(target)?.[1];
  if (rest === undefined) return target;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Whether a request has exactly one Host: what stands between the caller and us may have read another one (RFC 9112). */
export function hasOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts === 1 || (hosts === 0 && httpVersion !== '1.1');
}

/** What is wrong with the query of a target before its parameters are looked at; `null` when nothing is. */
export function judgeQuery(target: string): string | null {
  const start = target.indexOf('?');
  if (start < 0) return null;
  // Whatever is above is not read at all, and would be ignored without a word.
  if (target.length > longestSure && target.slice(start).split('&').length > parametersMost) {
    return `Bad Request: there are more than ${parametersMost} parameters`;
  }
  return isDecodable(target.slice(start))
    ? null
    : 'Bad Request: the query has a percent sign that does not encode UTF-8';
}

function isDecodable(text: string): boolean {
  if (!text.includes('%')) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    // The only thing that it throws for.
    return false;
  }
}

/** Returns false for a `%` that encodes no UTF-8: one of a password must be written as `%25`. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns true for an http:// or https:// URL without user, query and fragment. */
export function isPlainWebUrl(text: string): boolean {
  const url = URL.parse(text);
  return hasHost(text, ['http:', 'https:']) && !url?.username && !url?.password && !/[?#]/.test(text);
}

/** Returns true for the URL of a Redis, of several nodes of a Cluster, or of a name at Sentinels. */
export function isRedisUrl(text: string): boolean {
  if (!isDecodable(text)) return false;
  const isRedis = (url: string) => hasHost(url, ['redis:', 'rediss:']) && hasDatabase(URL.parse(url));
  const sentinel = 'redis+sentinel://';
  if (!text.startsWith(sentinel)) return text.split(',').every((url) => isRedis(url.trim()));
  // Several sentinels stand before one name, which is no URL to the platform's own parser.
  const [, hosts = '', name = ''] = /^([^/]*)\/(.*)$/s.exec(text.slice(sentinel.length)) ?? [];
  return /^[^/?#]+(\/\d+)?$/.test(name) && hosts.split(',').every((host) => isRedis(`redis://${host}`));
}

/** Returns false where something else than the number of a database follows the host, such as the rest of a password with `/`, `?` or `#`. */
function hasDatabase(url: URL | null): boolean {
  return url !== null && /^\/?\d*$/.test(url.pathname) && url.hash === '' && !url.search.includes('@');
}

/** Returns true for a URL of one of these protocols that names a host. */
export function hasHost(text: string, protocols: readonly string[]): boolean {
  const url = URL.parse(text);
  // The platform's parser forgives blanks and missing slashes; those who use the text later may not.
  if (!url?.hostname || /\s/.test(text)) return false;
  return protocols.some((protocol) => text.startsWith(`${protocol}//`));
}

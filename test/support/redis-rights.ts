import { listBlocks } from './doc-page.ts';
import type { TestRecord } from './redis.ts';
import { read } from './tree.ts';

/** Returns the words of the user that docs/operate.md describes, but for its name and password. */
export function documentedRights(): string[] {
  const block = listBlocks(read('docs/operate.md')).find(({ language }) => language === 'acl');
  return block!.text
    .trim()
    .split(/\s+/)
    .slice(2)
    .filter((word) => word !== '#HASH');
}

/** Makes such a user in a Redis; returns the URL with its login. */
export async function makeRedisUser(
  { url, connection }: Pick<TestRecord, 'url' | 'connection'>,
  { user = 'trawl', password = 'first', rights = documentedRights() } = {},
): Promise<string> {
  await connection.send(['ACL', 'SETUSER', user, 'reset', ...rights, `>${password}`]);
  return url.replace('://', `://${user}:${password}@`);
}

/** Returns each command that Redis has refused for lack of a right. */
export async function refusedCommands({ connection }: Pick<TestRecord, 'connection'>): Promise<string[]> {
  const entries = (await connection.send(['ACL', 'LOG'])) as unknown[][];
  const fields = entries.map((entry) =>
    Object.fromEntries(entry.flatMap((word, n) => (n % 2 ? [] : [[word, entry[n + 1]]]))),
  );
  return fields
    .filter(({ reason }) => reason !== 'auth')
    .map(({ reason, object, username }) => `${username}: ${reason} ${object}`);
}

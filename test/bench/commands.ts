import { openRedisClient } from '../../src/store/redis/redis-client.ts';
import { until } from '../support/until.ts';

/** Commands, in which an id may stand for another one. */
export type Commands = (id: string) => string[][];

const fromScript = /^\S+ \[\d+ lua\] (.*)$/;
const quoted = /"((?:[^"\\]|\\.)*)"/g;
const escaped = /\\(?:x([0-9a-f]{2})|(.))/g;
const letters: Record<string, string> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' };

/**
 * Watches what scripts do in a Redis while something is done that answers an id. Answers the commands with another id in
 * the place of that one; those that only ask for the time are left out.
 */
export async function recordCommands(url: string, act: () => Promise<string>): Promise<Commands> {
  const watcher = await openRedisClient(url);
  const client = await openRedisClient(url);
  const lines: string[] = [];
  try {
    await watcher.monitor((line) => lines.push(String(line)));
    const id = await act();
    await client.sendCommand(['ECHO', id]);
    await until(() => lines.some((line) => line.includes(`"ECHO" "${id}"`)), 2, 'all commands are seen');
    const seen = lines.flatMap((line) => fromScript.exec(line)?.[1] ?? []).map(readCommand);
    const commands = seen.filter(([name]) => name?.toUpperCase() !== 'TIME');
    return (other) => commands.map((command) => command.map((word) => word.replaceAll(id, other)));
  } finally {
    client.destroy();
    watcher.destroy();
  }
}

/** The words of a command as MONITOR writes them. */
function readCommand(text: string): string[] {
  return [...text.matchAll(quoted)].map(([, word]) =>
    word!.replace(escaped, (_, code?: string, letter?: string) =>
      code ? String.fromCharCode(Number.parseInt(code, 16)) : (letters[letter!] ?? letter!),
    ),
  );
}

import library from '@redis/client/dist/lib/client/index.js';
import { ErrorReply } from '@redis/client/dist/lib/errors.js';
import { RESP_TYPES } from '@redis/client/dist/lib/RESP/decoder.js';
import { withTimeout } from './redis-time.ts';

/** One connection to one Redis. Once it breaks it stays so: `ReconnectingConnection` opens the next one. */
export type RedisClient = ReturnType<typeof makeRedisClient>;

/** Leaves the replies to a command as bytes: some strings of the record are no text. */
export const asBytesOptions = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } };

/** Login that each connection has given last. */
const logins = new WeakMap<RedisClient, string>();
const connectTimeoutMs = 1_000;
const maxCommandsInFlight = 20_000;

/** Opens a connection, or throws within the timeout. */
export async function openRedisClient(url: string): Promise<RedisClient> {
  const client = makeRedisClient(url);
  // Each pending command fails with the same error; without a listener it would end the process.
  client.on('error', () => {});
  logins.set(client, String(loginOf(url)));
  try {
    await withTimeout(client.connect());
    return client;
  } catch (error) {
    client.destroy();
    throw error;
  }
}

/** Asks one question over a connection of its own. The login is used only if the server wants one that the URL lacks. */
export async function askOnce(url: string, question: readonly string[], login?: readonly string[]): Promise<unknown> {
  const client = await openRedisClient(url);
  const ask = (command: readonly string[]) => withTimeout(client.sendCommand(command));
  try {
    return await ask(question).catch(async (error) => {
      if (!login || !isReply(error, /^NOAUTH/)) throw error;
      await ask(['AUTH', ...login]);
      return ask(question);
    });
  } finally {
    client.destroy();
  }
}

/** Returns user and password of a URL, as AUTH wants them; nothing without a password. */
export function loginOf(url: string): readonly string[] {
  const [, login] = /^[\w+]+:\/\/(?:([^/]*)@)?/.exec(url) ?? [];
  const [user = '', password = ''] = (login ?? '').split(/:(.*)/s).map(decodeURIComponent);
  return password === '' ? [] : [user, password].filter((part) => part !== '');
}

/**
 * Sends the login again after it has changed. Returns false when Redis refuses the new one, once: the connection keeps the login that it
 * has, and this one is not tried on it again.
 */
export async function logInAgain(client: RedisClient, login: readonly string[]): Promise<boolean> {
  if (login.length === 0 || logins.get(client) === String(login)) return true;
  logins.set(client, String(login));
  try {
    await client.sendCommand(['AUTH', ...login]);
    return true;
  } catch (error) {
    if (isReply(error)) return false;
    throw error;
  }
}

/** True for an error that Redis itself answered with these words. */
export function isReply(error: unknown, words = /^/): error is ErrorReply {
  return error instanceof ErrorReply && words.test(error.message);
}

/**
 * Makes the library's class itself: its `createClient` adds 800 methods for commands, in 40 ms of CPU, and its main file loads clients of
 * Cluster and Sentinel besides, in as many. The library's reconnects are off: its Cluster client never finishes connecting while one
 * node is down, its Sentinel client sends a command again whose answer was lost. Its timeouts are off: one ends when a command is
 * written, the other never fires while more are written, and both blame Redis when this process was busy.
 */
function makeRedisClient(url: string) {
  return new library.default({
    url,
    // Replies are then plain strings, numbers and lists, also while subscribed.
    RESP: 2,
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: 'disabled',
    commandsQueueMaxLength: maxCommandsInFlight,
    commandOptions: { timeout: undefined },
    // Shorter than ours: what is still connecting cannot be ended from outside.
    socket: { connectTimeout: connectTimeoutMs, reconnectStrategy: false },
  });
}

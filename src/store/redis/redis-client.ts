import { createClient, ErrorReply } from 'redis';
import { inTime } from './timeout.ts';

/** One connection to one Redis. Once it breaks it stays so: `link.ts` opens the next one. */
export type Client = ReturnType<typeof makeClient>;

const connectTimeoutMs = 1_000;
const mostCommandsInFlight = 20_000;

/** Opens a connection, or fails in time. */
export async function openClient(url: string): Promise<Client> {
  const client = makeClient(url);
  // Whoever waits for an answer gets the same error; without a listener it would end the process.
  client.on('error', () => {});
  try {
    await inTime(client.connect());
    return client;
  } catch (error) {
    client.destroy();
    throw error;
  }
}

/** Asks one question over a connection of its own. The login is used only if the server wants one that the URL lacks. */
export async function askOnce(url: string, question: string[], login?: string[]): Promise<unknown> {
  const client = await openClient(url);
  const ask = (command: string[]) => inTime(client.sendCommand(command));
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

/** Whether an error is what Redis itself answered, and has these words. */
export function isReply(error: unknown, words = /^/): error is ErrorReply {
  return error instanceof ErrorReply && words.test(error.message);
}

/**
 * The library's own ways to reconnect are off. Its Cluster client never finishes connecting while one node is down, its
 * Sentinel client sends a command again whose answer was lost. Its limits are off too: one ends when a command is written,
 * the other never comes while more are written, and both blame Redis when this process was busy.
 */
function makeClient(url: string) {
  return createClient({
    url,
    // Replies are then plain strings, numbers and lists, also while subscribed.
    RESP: 2,
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: 'disabled',
    commandsQueueMaxLength: mostCommandsInFlight,
    commandOptions: { timeout: undefined },
    // Shorter than ours: what is still connecting cannot be ended from outside.
    socket: { connectTimeout: connectTimeoutMs, reconnectStrategy: false },
  });
}

import { createClient, ErrorReply } from 'redis';

/** One connection to one Redis. Once it breaks it stays so: `link.ts` opens the next one. */
export type Client = ReturnType<typeof makeClient>;

const connectTimeoutMs = 1_000;
const idleTimeoutMs = 1_000;
const pingIntervalMs = 400;
const mostCommandsInFlight = 20_000;

/** Opens a connection, or fails within about a second. It breaks when Redis is silent for longer than that. */
export async function openClient(url: string): Promise<Client> {
  const client = makeClient(url);
  // Whoever waits for an answer gets the same error; without a listener it would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.destroy();
    throw error;
  }
}

/** Asks one question over a connection of its own. The login is used only if the server wants one that the URL lacks. */
export async function askOnce(url: string, question: string[], login?: string[]): Promise<unknown> {
  const client = await openClient(url);
  try {
    return await client.sendCommand(question).catch(async (error) => {
      if (!login || !isReply(error, /^NOAUTH/)) throw error;
      await client.sendCommand(['AUTH', ...login]);
      return client.sendCommand(question);
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
 * Sentinel client sends a command again whose answer was lost, and neither has a limit that holds.
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
    // The library's limit holds only until a command is written, and costs a timer for each.
    commandOptions: { timeout: undefined },
    pingInterval: pingIntervalMs,
    socket: { connectTimeout: connectTimeoutMs, socketTimeout: idleTimeoutMs, reconnectStrategy: false },
  });
}

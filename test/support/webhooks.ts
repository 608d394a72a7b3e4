import { randomUUID } from 'node:crypto';
import { receiverOf } from '../../src/model/public-address.ts';
import { packTexts } from '../../src/store/jobs/ended-job.ts';
import { readStored } from '../../src/store/jobs/read-job.ts';
import { keys, longId, shortId } from '../../src/store/keys.ts';
import { type TestStore, theJob } from './record.ts';

/** Puts webhooks into the record that are due as this one is, or from a later time on, faster than through all that comes before. */
export async function copyWebhook(
  store: TestStore,
  id: string,
  count: number,
  urlOf: (n: number) => string,
  from?: number,
): Promise<void> {
  const { connection } = store;
  const [bytes] = await connection.readBytes([keys.endedJob(id)]);
  const job = await theJob(store, id);
  const webhook = (await connection.read(['HGETALL', keys.webhook(id)])) as string[];
  const at = from ?? Number(webhook[webhook.indexOf('created_at') + 1]);
  const commands = Array.from({ length: count }, (_, n) => {
    const [copy, url] = [randomUUID(), urlOf(n)];
    const receiver = receiverOf(job.account, url);
    const [words = '', marks = ''] = String(bytes).split('\n');
    const head = Buffer.from(`${words.replace(/\S+$/, receiver)}\n${marks}\n`);
    return [
      ['SET', keys.endedJob(copy), Buffer.concat([head, packTexts({ ...job, webhook_url: url })])],
      ['HSET', keys.webhook(copy), ...webhook],
      ['ZADD', keys.webhooks, String(at + n / 10), `${receiver}/${copy}`],
    ];
  });
  for (let n = 0; n < count; n += 250) {
    await Promise.all(commands.slice(n, n + 250).flatMap((three) => three.map((command) => connection.send(command))));
  }
}

/**
 * Puts ended deliveries of an account into the record, oldest first, from a time on, `together` of each millisecond. Returns the ids of
 * their jobs, which the record does not have.
 */
export async function putDeliveries(
  { connection }: TestStore,
  account: string,
  states: readonly string[],
  from: number,
  together = 1,
): Promise<string[]> {
  const made = states.map((state, n) => ({ id: randomUUID(), state, at: String(from + Math.floor(n / together)) }));
  for (let n = 0; n < made.length; n += 1_000) {
    const commands = made.slice(n, n + 1_000).flatMap(({ id, state, at }) => [
      ['ZADD', keys.deliveries(account), at, shortId(id)],
      ['HSET', keys.webhook(id), 'state', state, 'attempts', '1', 'created_at', at],
    ]);
    await Promise.all(commands.map((command) => connection.send(command)));
  }
  return made.map(({ id }) => id);
}

/** Everything that the record holds, as one text. */
export async function wholeRecord(store: TestStore): Promise<string> {
  const { connection } = store;
  const names = (await connection.send(['KEYS', '*'])) as string[];
  const dumped = await Promise.all(
    names.map(async (name) => {
      const type = String(await connection.send(['TYPE', name]));
      // Some last for seconds only, and may be over since the names were read.
      if (type === 'none') return '';
      // The texts of an ended job are deflated.
      if (name.startsWith(keys.endedJob('')))
        return JSON.stringify(await readStored(store, longId(name.split(':').at(-1)!)));
      const read: Record<string, string[]> = {
        string: ['GET', name],
        hash: ['HGETALL', name],
        zset: ['ZRANGE', name, '0', '-1'],
        list: ['LRANGE', name, '0', '-1'],
        stream: ['XRANGE', name, '-', '+'],
      };
      return JSON.stringify([name, await connection.send(read[type]!)]);
    }),
  );
  return dumped.join('\n');
}

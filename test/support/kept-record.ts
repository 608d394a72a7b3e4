import { type JobStatus, jobStatuses } from '../../src/model/job.ts';
import { keyStart } from '../../src/store/keys.ts';
import type { Connection } from '../../src/store/redis/connection.ts';
import { pairs } from '../../src/store/script.ts';

export type Fields = Readonly<Record<string, string>>;

/** Letters of an ended job that its words never exceed; its deflated texts follow. */
const maxWords = 400;

/** Reads every key of a record, one by one. */
export async function readWhole({ send }: Pick<Connection, 'send'>): Promise<KeptRecord> {
  const record = new KeptRecord();
  const names = (await send(['KEYS', `${keyStart}*`])) as string[];
  await Promise.all(names.map(async (name) => record.keep(name, ...(await readKey(send, name)))));
  return record;
}

/** Returns the kind of a key, and what it holds: the entries of a stream as their fields, oldest first. */
async function readKey(send: Connection['send'], name: string): Promise<readonly [kind: string, held: unknown]> {
  const kind = String(await send(['TYPE', name]));
  if (kind === 'hash') return [kind, pairs(await send(['HGETALL', name]))];
  if (kind === 'zset') return [kind, pairs(await send(['ZRANGE', name, '0', '-1', 'WITHSCORES']))];
  if (kind === 'string') return [kind, String(await send(['GETRANGE', name, '0', String(maxWords)]))];
  if (kind !== 'stream') return [kind, null];
  const entries = (await send(['XRANGE', name, '-', '+'])) as [string, string[]][];
  return [kind, entries.map(([, fields]) => pairs(fields))];
}

/** What every key of the record held, without the beginning that all have. */
export class KeptRecord {
  readonly #names = new Set<string>();
  readonly #fields = new Map<string, Fields>();
  readonly #texts = new Map<string, string>();
  readonly #streams = new Map<string, readonly Fields[]>();

  keep(key: string, kind: string, held: unknown): void {
    const name = key.slice(keyStart.length);
    this.#names.add(name);
    if (kind === 'string') this.#texts.set(name, held as string);
    if (kind === 'stream') this.#streams.set(name, held as Fields[]);
    if (kind === 'hash' || kind === 'zset') this.#fields.set(name, held as Fields);
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Fields of a hash, or scores of a sorted set; without any where it is absent. */
  fields(name: string): Fields {
    return this.#fields.get(name) ?? {};
  }

  /** Names in a hash or a sorted set, sorted. */
  names(name: string): string[] {
    return Object.keys(this.fields(name)).sort();
  }

  /** Hashes or sorted sets of one kind with their ids. */
  each(kind: string): [id: string, fields: Fields][] {
    return ofKind(this.#fields, kind);
  }

  streams(kind: string): [id: string, entries: readonly Fields[]][] {
    return ofKind(this.#streams, kind);
  }

  ends(): {
    readonly id: string;
    readonly account: string;
    readonly status: JobStatus | undefined;
    readonly created_at: number;
    readonly receiver: string;
  }[] {
    return ofKind(this.#texts, 'done').map(([id, text]) => {
      const words = text.split('\n', 1)[0]!.split(' ');
      const status = jobStatuses.find((one) => one.startsWith(words[1]!));
      return {
        id,
        account: words[0]!,
        status,
        created_at: Number(words[3]),
        receiver: words[13] === '-' ? '' : words[13]!,
      };
    });
  }
}

function ofKind<T>(all: ReadonlyMap<string, T>, kind: string): [id: string, held: T][] {
  const start = `${kind}:`;
  return [...all].flatMap(([name, held]) => (name.startsWith(start) ? [[name.slice(start.length), held]] : []));
}

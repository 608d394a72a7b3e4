import { createConnection, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { loginOf } from '../redis/redis-client.ts';

/** No byte for so long ends a transfer: Redis sends one at least every 10 s while it prepares the snapshot. */
const silenceMs = 60_000;
const markBytes = 40;
const lineEnd = 0x0a;

/**
 * Asks the Redis of a URL for a snapshot as a replica does, and yields its bytes (RDB): Redis forks, so it is all of its data at one
 * moment, while it goes on to answer others. Nothing follows the snapshot, and Redis never counts us as a replica.
 */
export async function* streamSnapshot(url: string): AsyncGenerator<Buffer> {
  const wire = dial(url);
  const login = loginOf(url);
  wire.setTimeout(silenceMs, () => wire.destroy(new Error(`Redis sent nothing for ${silenceMs / 1000} s`)));
  try {
    const pieces = new PieceReader(wire);
    if (login.length > 0) readReply(await ask(wire, pieces, ['AUTH', ...login]));
    // Without the first Redis writes a file on its own disk before; without the second its changes would follow.
    for (const ability of [
      ['capa', 'eof'],
      ['rdb-only', '1'],
    ])
      await ask(wire, pieces, ['REPLCONF', ...ability]);
    const answer = readReply(await ask(wire, pieces, ['SYNC']));
    if (!answer.startsWith('$')) throw new Error(`Redis answered ${answer.slice(0, 80)} to SYNC`);
    if (answer.startsWith('$EOF:')) yield* untilMark(pieces, Buffer.from(answer.slice(5)));
    else yield* pieces.exactly(Number(answer.slice(1)));
  } finally {
    wire.destroy();
  }
}

export function databaseOf(url: string): number {
  return url.startsWith('unix:') ? 0 : Number(new URL(url).pathname.slice(1) || '0');
}

function dial(url: string): Socket {
  const [, path] = /^unix:\/\/(?:[^@/]*@)?(\/.*)$/.exec(url) ?? [];
  if (path !== undefined) return createConnection(decodeURIComponent(path));
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const address = { host, port: Number(port || '6379') };
  if (protocol !== 'rediss:') return createConnection(address);
  return connectTls({ ...address, ...(isIP(host) ? {} : { servername: host }) });
}

function ask(wire: Socket, pieces: PieceReader, words: readonly string[]): Promise<string> {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  wire.write(`*${words.length}\r\n${parts.join('')}`);
  return pieces.line();
}

function readReply(line: string): string {
  if (line.startsWith('-')) throw new Error(`Redis answered: ${line.slice(1, 200)}`);
  return line;
}

/** The snapshot ends with this mark, which is the last that Redis sends. */
async function* untilMark(pieces: PieceReader, mark: Buffer): AsyncGenerator<Buffer> {
  if (mark.length !== markBytes) throw new Error('Redis announced no end of the snapshot');
  let held = Buffer.alloc(0);
  for (;;) {
    const piece = await pieces.next();
    if (piece === null) throw new Error('Redis ended the connection within the snapshot');
    const bytes = Buffer.concat([held, piece]);
    const isOver = bytes.subarray(-markBytes).equals(mark);
    const rest = Math.max(0, bytes.length - markBytes);
    if (rest > 0) yield bytes.subarray(0, rest);
    if (isOver) return;
    held = bytes.subarray(rest);
  }
}

class PieceReader {
  readonly #pieces: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(wire: Socket) {
    this.#pieces = wire[Symbol.asyncIterator]();
  }

  async next(): Promise<Buffer | null> {
    if (this.#rest.length > 0) {
      const rest = this.#rest;
      this.#rest = Buffer.alloc(0);
      return rest;
    }
    const { done, value } = await this.#pieces.next();
    return done ? null : value;
  }

  /** Returns the next line that is not empty: Redis sends empty ones while it prepares. */
  async line(): Promise<string> {
    let said = Buffer.alloc(0);
    for (;;) {
      const end = said.indexOf(lineEnd);
      if (end >= 0) {
        const line = said.toString('latin1', 0, end).trim();
        said = said.subarray(end + 1);
        if (line === '') continue;
        this.#rest = said;
        return line;
      }
      const piece = await this.next();
      if (piece === null) throw new Error('Redis ended the connection');
      said = Buffer.concat([said, piece]);
    }
  }

  async *exactly(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0; ) {
      const piece = await this.next();
      if (piece === null) throw new Error('Redis ended the connection within the snapshot');
      yield piece.subarray(0, left);
      left -= piece.length;
    }
  }
}

import { LostAnswer, refuse } from '../../src/base/errors.ts';
import { keys } from '../../src/store/keys.ts';
import type { Connection } from '../../src/store/redis/connection.ts';
import { asBytesOptions, type RedisClient } from '../../src/store/redis/redis-client.ts';
import type { RecordStore } from '../../src/store/script.ts';
import type { LuaMutant } from '../mutation/lua-mutants.ts';
import type { Owner, Scheduler } from './scheduler.ts';

/** Time of the history; nothing else moves it. */
export interface SimulatedTime {
  now: number;
  /** Until then the clock of Redis counts as not steady. */
  unsteadyUntil: number;
}

/** Moves the clock of Redis and of every machine. */
export function jump(time: SimulatedTime, milliseconds: number): string {
  time.now += milliseconds;
  time.unsteadyUntil = time.now + 600_000;
  return `${milliseconds} ms`;
}

/** Longest wait for an answer. */
export const maxCallMs = 1_500;

/**
 * Gives scripts the time of the history, and takes the lease of the leader from Redis, which would end it by a clock of its own:
 * `endLease` does. Both times stand behind the arguments.
 */
const prelude = `
local lease, seconds, micros = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
local real = redis
local redis = { pcall = real.pcall, sha1hex = real.sha1hex, call = function(name, ...)
  if name == 'TIME' then return { seconds, micros } end
  if name == 'SET' and ({ ... })[3] == 'PX' then return real.call('SET', (...), ({ ... })[2]) end
  if name == 'PTTL' then return tonumber(lease) end
  return real.call(name, ...)
end }
`;

/** A record on a real Redis, whose calls are events of a scheduler. */
export class SimulatedRecord {
  /** Has no timer of its own, which the time of the history would end. */
  readonly #client: RedisClient;
  readonly #scheduler: Scheduler;
  readonly #time: SimulatedTime;
  readonly #mutant: LuaMutant | null;
  #leaseEnds = 0;
  /** Times that Redis has run the mutant. */
  mutated = 0;

  constructor(client: RedisClient, scheduler: Scheduler, time: SimulatedTime, mutant: LuaMutant | null) {
    this.#client = client;
    this.#scheduler = scheduler;
    this.#time = time;
    this.#mutant = mutant;
  }

  /** The record as a process sees it. */
  storeFor(owner: Owner, machineAheadMs = 0): RecordStore {
    const make = <T>(what: string, run: () => Promise<T>) =>
      this.#scheduler.call(owner, what, run, (wasSent) =>
        wasSent ? new LostAnswer('unavailable') : refuse('unavailable'),
      );
    return this.#store((what, run) => make(what, run), machineAheadMs);
  }

  /** The record without the scheduler: what it does happens at once. */
  direct(): RecordStore {
    return this.#store((_, run) => run(), 0);
  }

  #store(make: <T>(what: string, run: () => Promise<T>) => Promise<T>, aheadMs: number): RecordStore {
    const time = this.#time;
    const send = (command: readonly (string | Buffer)[]) => this.#client.sendCommand([...command]);
    const clock = {
      now: () => time.now,
      isSteady: () => time.now >= time.unsteadyUntil,
      machineAheadMs: () => aheadMs,
    };
    const connection: Connection = {
      clock,
      timeoutMs: maxCallMs,
      eval: (lua, _sha, given, args, { asBytes } = {}) => {
        const until = time.now + maxCallMs;
        const name = lua.includes("'leading'") ? 'lead' : /'(\w+)'/.exec(lua.slice(lua.lastIndexOf('return {')))?.[1];
        return make(`script ${name ?? '?'}`, () => this.#eval(lua, given, [String(until), ...args], asBytes));
      },
      // The types of replies are those of the commands, as they are for the real connection.
      read: ((command: readonly string[]) => make(command[0]!, () => send(command))) as Connection['read'],
      readAll: (commands) => make('reads', () => Promise.all(commands.map((command) => send(command)))),
      readBytes: (given) =>
        make('MGET', () => this.#client.sendCommand(['MGET', ...given], asBytesOptions) as Promise<(Buffer | null)[]>),
      send: (command) => make(String(command[0]), () => send(command)),
      subscribe: async () => async () => {},
      ready: () => true,
      durability: () => ({ weaknesses: [], replicas: 0 }),
      watchDurability: () => () => {},
      hasReplicas: () => false,
      calls: () => 0,
      close: async () => {},
    };
    return { connection, clock: { now: () => time.now, offset: () => 0 } };
  }

  async #eval(
    lua: string,
    given: readonly string[],
    args: readonly (string | Buffer)[],
    asBytes: boolean | undefined,
  ): Promise<unknown> {
    await this.endLease();
    const mutated = this.#mutate(lua);
    const body = mutated.replace('\n', `\n${prelude}`);
    const { now } = this.#time;
    const times = [(now % 1000) * 1000, Math.floor(now / 1000), this.#leaseEnds - now].map(String);
    const command = ['EVAL', body, String(given.length), ...given, ...args, ...times];
    const reply = await this.#client.sendCommand(command, asBytes ? asBytesOptions : undefined);
    const [word] = Array.isArray(reply) ? reply.map(String) : [];
    if (word === 'late') throw refuse('unavailable');
    // A mutant that Redis cannot run is none.
    if (mutated !== lua) this.mutated++;
    if (word === 'leading') this.#leaseEnds = this.#time.now + Number(args[4]);
    return reply;
  }

  #mutate(lua: string): string {
    if (this.#mutant === null) return lua;
    const { within, place, instead } = this.#mutant;
    if (!lua.includes(`'${within}'`) || !place.test(lua)) return lua;
    return lua.replace(place, instead);
  }

  /** Ends the lease of a leader that has not renewed it in time. */
  async endLease(): Promise<void> {
    if (this.#time.now >= this.#leaseEnds) await this.#client.sendCommand(['DEL', keys.lead]);
  }

  /** Remembers the whole record; the result puts it back, without a leader, as a restored backup has none. */
  async keep(): Promise<() => Promise<void>> {
    const send = (command: string[]) => this.#client.sendCommand(command);
    const names = (await send(['KEYS', '{trawl}:*'])) as unknown as string[];
    for (const name of names) await send(['COPY', name, `kept:${name}`, 'REPLACE']);
    return async () => {
      const present = (await send(['KEYS', '{trawl}:*'])) as unknown as string[];
      if (present.length > 0) await send(['DEL', ...present]);
      for (const name of names) await send(['COPY', `kept:${name}`, name]);
      await send(['DEL', keys.lead]);
    };
  }
}

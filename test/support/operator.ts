import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand as runAdmin } from '../../src/admin/admin.ts';
import { commands } from '../../src/admin/commands.ts';
import { runCommand as runDoctor } from '../../src/admin/doctor.ts';
import type { Terminal } from '../../src/base/terminal.ts';
import { recordFolder } from '../../src/store/open-store.ts';
import type { ServerOptions } from '../../src/store/redis/embedded-server.ts';
import { storeOf, type TestStore } from './record.ts';
import { aFolder, startTestRedis } from './redis.ts';
import { root } from './tree.ts';

export interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A JSON object, with the fields that tests reach into. */
export type Shape = Record<string, string | number | boolean | null> & {
  readonly id: string;
  readonly key: string;
  readonly usage: Record<string, unknown>;
  readonly problems: string[];
};

/** Fields that a JSON object has only at times. */
const atTimes = /^(?:webhook_secret|queue|stage|speed_bytes|eta_seconds)$/;

type Environment = Readonly<Record<string, string>>;

/** An operator beside a running record. */
export interface Operator {
  readonly data: string;
  readonly store: TestStore;
  /** Pid of its redis-server. */
  readonly pid: () => number;
  /** One `admin` command in this process. */
  readonly run: (line: readonly string[], env?: Environment, isWatched?: boolean) => Promise<CommandResult>;
  /** Its JSON value; it must exit with 0, in the shape that the table of commands promises. */
  readonly json: <T = Shape>(...line: string[]) => Promise<T>;
  /** Runs a command that must be refused, and returns `{error, code}`. */
  readonly refused: (...line: string[]) => Promise<{ error: string; code: string }>;
  readonly doctor: (args: readonly string[], env?: Environment) => Promise<CommandResult>;
  readonly stop: () => Promise<void>;
}

/** Starts a record where a running `trawl up` would have it. */
export async function startOperator(options: Partial<ServerOptions> = {}): Promise<Operator> {
  const { folder: data, remove } = aFolder();
  const redis = await startTestRedis({ folder: recordFolder(data), fsync: 'always', ...options });
  const inside = async (work: (terminal: Terminal) => Promise<number>, env: Environment, isWatched = false) => {
    const said = { out: '', err: '' };
    const out = (text: string) => {
      said.out += text;
    };
    const err = (text: string) => {
      said.err += text;
    };
    const code = await work({ out, err, isWatched, env: { TRAWL_DATA: data, ...env } });
    return { code, ...said };
  };
  const run: Operator['run'] = (line, env = {}, isWatched = false) =>
    inside((terminal) => runAdmin(line, terminal), env, isWatched);
  return {
    data,
    store: storeOf(redis.connection),
    pid: redis.pid,
    run,
    json: async (...line) => {
      const { code, out, err } = await run([...line, '--json']);
      expect({ code, err }, line.join(' ')).to.deep.equal({ code: 0, err: '' });
      return checkShape(line, JSON.parse(out));
    },
    refused: async (...line) => {
      const { code, out } = await run([...line, '--json']);
      expect(code, line.join(' ')).to.equal(1);
      return JSON.parse(out);
    },
    doctor: (args, env = {}) => inside((terminal) => runDoctor(args, terminal), env),
    stop: async () => {
      await redis.stop();
      remove();
    },
  };
}

/** Runs `./trawl` as its users do. */
export function trawl(args: readonly string[], env: Environment = {}): Promise<CommandResult> {
  return runProgram(join(root, 'trawl'), args, { ...inherited(), ...env });
}

/** Runs a program to its end. */
export function runProgram(program: string, args: readonly string[], env: Environment): Promise<CommandResult> {
  return new Promise((resolve) => {
    execFile(program, args, { env }, (error, out, err) => resolve({ code: Number(error?.code ?? 0), out, err }));
  });
}

function inherited(): Environment {
  const names = ['PATH', 'HOME', 'TMPDIR', 'XDG_CACHE_HOME', 'NODE_COMPILE_CACHE'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

function checkShape<T>([group, verb]: readonly string[], value: T): T {
  const { json } = commands.find((one) => one.group === group && (one.verb === verb || one.verb === ''))!;
  const values = json.startsWith('[') ? (value as unknown as object[]) : [value as object];
  const names = json.match(/\w+/g)!.filter((name) => !atTimes.test(name));
  for (const one of values) {
    const found = Object.keys(one).filter((name) => !atTimes.test(name));
    expect(found, `${group} ${verb}`).to.have.members(names);
  }
  return value;
}

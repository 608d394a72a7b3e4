// The role egress at any number of places: `egress-child.ts [--lifeline] [--drain SECONDS] PLACE…`. It logs to its standard output.
import { parseArgs } from 'node:util';
import { readListenAddress } from '../../src/egress/egress.ts';
import { makeRole } from '../../src/roles/run-role.ts';
import { serveEgress } from '../../src/roles/serve-egress.ts';

const { values, positionals } = parseArgs({
  options: { lifeline: { type: 'boolean' }, drain: { type: 'string' } },
  allowPositionals: true,
});
const places = positionals.flatMap((text) => readListenAddress(text, '127.0.0.1') ?? []);
const drainSeconds = Number(values.drain ?? 20);
const run = makeRole({
  name: 'egress',
  help: '',
  options: { lifeline: { type: 'boolean' } },
  start: (running) => serveEgress(running, places, drainSeconds),
});
process.exitCode = await run(values.lifeline ? ['--lifeline'] : [], {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  isWatched: false,
  env: process.env,
});

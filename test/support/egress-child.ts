// The role egress at any number of places: `egress-child.ts [--lifeline] PLACE…`. It logs to its standard output.
import { readListenAddress } from '../../src/egress/egress.ts';
import { startEgress } from '../../src/roles/run-egress.ts';
import { runRole } from '../../src/roles/run-role.ts';

const [first, ...rest] = process.argv.slice(2);
const hasLifeline = first === '--lifeline';
const places = (hasLifeline ? rest : [first ?? '', ...rest]).flatMap(
  (text) => readListenAddress(text, '127.0.0.1') ?? [],
);
process.exitCode = await runRole(
  {
    name: 'egress',
    help: '',
    options: { lifeline: { type: 'boolean' } },
    start: (running) => startEgress(running, places),
  },
  hasLifeline ? ['--lifeline'] : [],
  {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    isWatched: false,
    env: process.env,
  },
);

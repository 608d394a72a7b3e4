import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Terminal } from '../admin/terminal.ts';
import { readConfig } from '../base/config.ts';
import { makeLog } from '../base/log.ts';
import { makeMetrics } from '../base/metrics.ts';
import { egressPort, readListenAddress, runEgress } from '../egress/egress.ts';

const help = `Usage: trawl egress [--at PLACE] [--lifeline]

Runs the proxy through which everything reaches the addresses that callers name.
  --at PLACE   the absolute path of a socket, or a port (${egressPort})
  --lifeline   ends when the standard input does
`;

/** Runs the role `egress` until SIGTERM; gives the exit code. */
export async function runEgressRole(args: readonly string[], terminal: Terminal): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { at: { type: 'string' }, lifeline: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) {
    terminal.out(help);
    return 0;
  }
  const config = readConfig(terminal.env, (path) => readFileSync(path, 'utf8'));
  const place = readListenAddress(values.at ?? String(egressPort), config.host);
  if (!place) {
    terminal.err(help);
    return 2;
  }
  const log = makeLog({ level: config.logLevel, write: terminal.err, now: Date.now });
  const lifeline = values.lifeline ? { lifeline: process.stdin } : {};
  await runEgress({ config, log, metrics: makeMetrics(), places: [place], ...lifeline });
  return 0;
}

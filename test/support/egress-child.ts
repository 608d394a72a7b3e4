// A process that is nothing but the role: `egress-child.ts [--lifeline] PLACE…`
import { readFileSync } from 'node:fs';
import { readConfig } from '../../src/base/config.ts';
import { makeLog } from '../../src/base/log.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { readListenAddress, runEgress } from '../../src/egress/egress.ts';

const config = readConfig(process.env, (path) => readFileSync(path, 'utf8'));
const log = makeLog({ level: config.logLevel, now: Date.now, write: (line) => process.stdout.write(line) });
const [first, ...rest] = process.argv.slice(2);
const hasLifeline = first === '--lifeline';
const places = (hasLifeline ? rest : [first ?? '', ...rest]).flatMap(
  (text) => readListenAddress(text, config.host) ?? [],
);
await runEgress({ config, log, metrics: makeMetrics(), places, ...(hasLifeline && { lifeline: process.stdin }) });

// Makes what a reader sees of one fault, whose name is nowhere in it: node dashboards/draw/blind-drill.ts --seed WORD FOLDER
//   --seed WORD   decides the fault
//   --answer      draws nothing and prints the fault, its alerts and the first command of each of their runbooks
import { createHash } from 'node:crypto';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Alert, alerts, rulesFile } from '../../test/support/alerts.ts';
import { read, root } from '../../test/support/tree.ts';
import { drills } from '../../test/watch/drills.ts';
import { boards } from '../boards.ts';
import { openDrawer } from './draw-board.ts';
import { historyUrl, makeHistory, serveHistory } from './history-server.ts';
import { judgeAlerts } from './judge-alerts.ts';
import { widths } from './picture.ts';
import { writePictureSet } from './picture-set.ts';

const runbooks = 'docs/runbooks';
const maxMs = 60_000;

interface Firing {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: string;
}

const { values: options, positionals } = parseArgs({
  options: { seed: { type: 'string' }, answer: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const [folder] = positionals;
if (!options.seed || (!folder && !options.answer))
  throw new Error('Usage: blind-drill.ts --seed WORD [--answer] FOLDER');
const drill = drills[createHash('sha256').update(options.seed).digest().readUInt32BE() % drills.length]!;
if (options.answer) printAnswer();
else
  await writePictureSet({ folder: folder! }, async (to) => {
    await makeFolder(to);
    return [];
  });

function printAnswer(): void {
  console.log(`fault: ${drill.name}`);
  for (const name of Object.keys(drill.alerts)) {
    const [, command = 'none'] = /^```sh\n(.*)$/m.exec(read(`${runbooks}/${name}.md`)) ?? [];
    console.log(`${name}: ${command}`);
  }
}

async function makeFolder(to: string): Promise<void> {
  // The texts of alerts query Prometheus at the present, so the history ends now.
  const end = Math.floor(Date.now() / 1000);
  const rules = read(rulesFile).replaceAll(/^ +for: .*\n/gm, '');
  const history = await serveHistory(makeHistory({ drill: drill.name, end }), { rules });
  const drawer = await openDrawer();
  try {
    writeFileSync(join(to, 'alerts.md'), textOf(await readAlerts(end)));
    for (const { name } of boards) {
      await drawer.draw({ board: name, theme: 'dark', width: widths[0], file: join(to, `${name}.png`) }, end);
    }
  } finally {
    await drawer.close();
    await history.stop();
  }
  cpSync(join(root, runbooks), join(to, 'runbooks'), { recursive: true });
}

/** Returns the firing alerts, `for` respected, with their texts from Prometheus. */
async function readAlerts(end: number): Promise<Firing[]> {
  const names = [...(await judgeAlerts(historyUrl, end)).values()].flat();
  for (const began = performance.now(); ; await pause(200)) {
    const { data } = (await (await fetch(`${historyUrl}/api/v1/alerts`)).json()) as { data: { alerts: Firing[] } };
    const found = data.alerts.filter(({ state, labels }) => state === 'firing' && names.includes(labels.alertname!));
    const worded = found.filter(
      ({ annotations }) => !Object.values(annotations).some((text) => text.includes('<error ')),
    );
    if (names.every((name) => worded.some(({ labels }) => labels.alertname === name))) return worded;
    if (performance.now() - began > maxMs) throw new Error(`Prometheus words ${worded.length} of ${names}`);
  }
}

function textOf(firing: readonly Firing[]): string {
  const severityOf = ({ labels }: Pick<Alert, 'labels'>) => labels.severity;
  const texts = alerts.flatMap(({ alert, ...rule }) =>
    firing
      .filter(({ labels }) => labels.alertname === alert)
      .map(({ annotations: { summary, description = '', dashboard } }) => {
        return `## ${alert} (${severityOf(rule)})\n\n${summary}.\n\n${description && `${description}.\n\n`}Dashboard: ${dashboard}. Runbook: runbooks/${alert}.md\n`;
      }),
  );
  return `# Alerts that fire now\n\n${texts.join('\n')}`;
}

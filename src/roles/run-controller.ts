import type { ConfigRule } from '../base/config.ts';
import { buildController } from './build-controller.ts';
import { openKubernetesWorkers } from './kubernetes-workers.ts';
import { openReadiness } from './readiness.ts';
import { makeRole, type RunningRole } from './run-role.ts';
import { openShared, sharedRules, sharedSettings, warnIfAway } from './shared.ts';

const help = `Usage: trawl controller

Brings jobs to their end as Jobs of a cluster, apart from the other parts. Of several one leads; every one answers workers.
All settings are environment variables: docs/config.md lists them.
`;

const required = [...sharedSettings, 'TRAWL_EGRESS_ADDRESS'] as const;
const rules: readonly ConfigRule[] = [
  ...sharedRules,
  {
    broken: ({ runner }) => runner === 'process',
    sentence: 'TRAWL_RUNNER must be kubernetes here: worker processes run beside trawl up alone.',
  },
];

export const runCommand = makeRole({ name: 'controller', help, needs: { required, rules }, start });

async function start(running: RunningRole<(typeof required)[number]>): Promise<void> {
  const { config, stop, log, metrics, terminal, ending } = running;
  const readiness = await openReadiness(running, ['record', 'gateway']);
  const shared = await openShared(running, readiness);
  await warnIfAway('egress', config.egressAddress, log);
  const controller = await buildController(
    {
      ...shared,
      publicUrl: () => config.publicUrl,
      openWorkers: openKubernetesWorkers({
        config,
        env: terminal.env,
        now: shared.store.clock.now,
        metrics,
        log,
        ending,
      }),
      gatewayAddress: { host: config.host, port: config.gatewayPort },
      egress: config.egressAddress,
    },
    stop,
  );
  readiness.set('gateway', () => true);
  stop.add('readiness', () => {
    readiness.set('gateway', () => false);
    controller.pause();
  });
  log.info('the controller works', { port: config.gatewayPort });
}

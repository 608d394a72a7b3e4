import { openReadiness } from './readiness.ts';
import { makeRole, type RunningRole } from './run-role.ts';
import { needsOwnPorts, serveApi } from './serve-api.ts';
import { openShared, sharedRules, sharedSettings } from './shared.ts';

const help = `Usage: trawl api

Runs the public API apart from the other parts, as one of any number, and the dashboard at a second port unless TRAWL_DASHBOARD_PORT is
none. It only records jobs: controllers bring them to their end.
All settings are environment variables: docs/config.md lists them.
`;

/** Within the 40 s that the chart grants after SIGTERM. */
const drainSeconds = 30;
/** A proxy that calls about every second over each of its connections has heard by then that it is to close it. */
const idleSeconds = 5;

const needs = { required: sharedSettings, rules: [...sharedRules, needsOwnPorts] };

export const runCommand = makeRole({ name: 'api', help, needs, start });

async function start(running: RunningRole<(typeof sharedSettings)[number]>): Promise<void> {
  const { stop, log } = running;
  const readiness = await openReadiness(running, ['record', 'api']);
  const { port } = await serveApi({ ...(await openShared(running, readiness)), drainSeconds, idleSeconds }, stop);
  readiness.set('api', () => true);
  stop.add('readiness', () => void readiness.set('api', () => false));
  log.info('the api answers', { port });
}

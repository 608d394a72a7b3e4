import type { ConfigRule } from '../base/config.ts';
import { openCallHandlers } from './call-handlers.ts';
import { openReadiness } from './readiness.ts';
import { makeRole, type RunningRole } from './run-role.ts';
import { serveDashboard } from './serve-dashboard.ts';
import { openShared, sharedRules, sharedSettings } from './shared.ts';

const help = `Usage: trawl dashboard

Runs the dashboard apart from the public API, as one of any number, with an exposure and resources of its own. TRAWL_DASHBOARD_PORT=none
keeps role api from opening it, too.
All settings are environment variables: docs/config.md lists them.
`;

export const needsDashboardPort: ConfigRule = {
  broken: ({ dashboardPort }) => dashboardPort === null,
  sentence: 'TRAWL_DASHBOARD_PORT must be a port here: none is for role api, where role dashboard runs apart.',
};

const required = [...sharedSettings, 'TRAWL_DASHBOARD_PORT'] as const;
const rules = [...sharedRules, needsDashboardPort];

export const runCommand = makeRole({ name: 'dashboard', help, needs: { required, rules }, start });

async function start(running: RunningRole<(typeof required)[number]>): Promise<void> {
  const { config, stop, log } = running;
  const readiness = await openReadiness(running, ['record', 'dashboard']);
  const shared = await openShared(running, readiness);
  // Calls by hand wait for no job.
  const { signal } = new AbortController();
  const calls = await openCallHandlers(shared, () => config.publicUrl, { draining: signal, ending: signal }, stop);
  const { dashboardPort: port } = await serveDashboard({ ...shared, ...calls, port: config.dashboardPort }, stop);
  readiness.set('dashboard', () => true);
  stop.add('readiness', () => void readiness.set('dashboard', () => false));
  log.info('the dashboard answers', { port });
}

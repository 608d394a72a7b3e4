import { type Config, isLoopback } from '../base/config.ts';
import { type Finding, findingOf } from './doctor-finding.ts';

/** Checks the way of people to the dashboard, and tells which role serves it. */
export function checkDashboard({
  dashboardPort,
  dashboardUrl,
}: Pick<Config, 'dashboardPort' | 'dashboardUrl'>): Finding {
  const { protocol, hostname } = new URL(dashboardUrl);
  const isSafe = protocol === 'https:' || isLoopback(hostname);
  const open = `TRAWL_DASHBOARD_URL is ${dashboardUrl}, without TLS: passwords and sessions can be read on the network. Put a proxy with TLS in front and name its https:// URL.`;
  const served = dashboardPort === null ? 'role dashboard serves it apart' : `it is served at port ${dashboardPort}`;
  return findingOf(isSafe, 'dashboard', isSafe ? `People reach it at ${dashboardUrl}; ${served}.` : open, 'note');
}

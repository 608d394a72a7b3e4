import { listen } from '../api/http-server.ts';
import { limitKeylessRequests } from '../api/keyless-limit.ts';
import { readJsonLines } from '../archive/json-lines.ts';
import type { Config } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Shutdown } from '../base/shutdown.ts';
import type { PaymentProvider } from '../billing/payment-provider.ts';
import { auditRoutes } from '../dashboard/audit-routes.ts';
import { makeCallByHand } from '../dashboard/call-by-hand.ts';
import { chartRoutes } from '../dashboard/chart-routes.ts';
import { checkoutRoutes } from '../dashboard/checkout-routes.ts';
import { type DashboardPart, makeDashboard, type OpenRoute } from '../dashboard/dashboard-app.ts';
import { deliveryRoutes } from '../dashboard/delivery-routes.ts';
import { jobHistoryRoutes } from '../dashboard/job-history-routes.ts';
import { keyRoutes } from '../dashboard/key-routes.ts';
import { moneyRoutes } from '../dashboard/money-routes.ts';
import type { OpenidParts } from '../dashboard/openid-routes.ts';
import { servePages } from '../dashboard/page-files.ts';
import { passkeyRoutes } from '../dashboard/passkey-routes.ts';
import { servePaymentWebhook } from '../dashboard/payment-webhook.ts';
import { peopleRoutes } from '../dashboard/people-routes.ts';
import { receiverTestRoutes } from '../dashboard/receiver-test-routes.ts';
import { requestLogRoutes } from '../dashboard/request-log-routes.ts';
import { serviceRoutes } from '../dashboard/service-routes.ts';
import { makeSessionCookies } from '../dashboard/session-cookies.ts';
import { signInRoutes } from '../dashboard/sign-in-routes.ts';
import { topupRoutes } from '../dashboard/topup-routes.ts';
import type { CallHandlers } from './call-handlers.ts';
import type { SharedParts } from './shared.ts';
import { openProvider, sellerOf } from './start-billing.ts';

const drainSeconds = 2;

/** Parts that the dashboard shares with the public API where both are in one process. */
interface DashboardNeeds extends CallHandlers, SharedParts {
  readonly port: number;
}

/** Serves the dashboard until it is stopped; returns its port, and the URL at which people reach it. */
export async function serveDashboard(parts: DashboardNeeds, stop: Shutdown) {
  const { config, store, seal, objects, metrics, findCaller, blocked } = parts;
  const log = parts.log.with({ part: 'dashboard' });
  const draining = new AbortController();
  let url = config.dashboardUrl;
  const dashboardUrl = () => url;
  const cookies = makeSessionCookies(store, seal, () => url.startsWith('https:'));
  const openArchived = (object: string) => readJsonLines(objects, object);
  const hasOpenid = config.oidcIssuer !== null;
  const hasMailer = config.smtpUrl !== null;
  const ways = { store, seal, cookies, findCaller, blocked, dashboardUrl, hasOpenid, log };
  const signIn = signInRoutes({ ...ways, hasMailer, metrics });
  const passkeys = passkeyRoutes(ways);
  const openid = await openidRoutesOf(ways, config);
  // Only the provider's events tell that a checkout was paid.
  const provider = config.stripeWebhookSecret === null ? null : await openProvider(config, store);
  const payments = await paymentWebhookOf(parts, provider, log);
  const app = makeDashboard({
    openRoutes: [...signIn.open, ...passkeys.open, ...openid],
    routes: [
      ...signIn.signedIn,
      ...passkeys.signedIn,
      ...keyRoutes(objects),
      ...requestLogRoutes(store, openArchived),
      ...jobHistoryRoutes({ ...parts, callByHand: makeCallByHand(parts), draining: draining.signal }),
      ...moneyRoutes(store, openArchived, hasMailer),
      ...topupRoutes(config.stripeKey !== null),
      ...chartRoutes(store, openArchived),
      ...checkoutRoutes({ store, provider, dashboardUrl }),
      ...peopleRoutes(objects, dashboardUrl, hasMailer ? seal : null),
      ...deliveryRoutes(seal),
      ...receiverTestRoutes(config.egressAllow),
      ...auditRoutes(openArchived),
      ...serviceRoutes(),
    ],
    extend: (made) => {
      servePages(made, limitKeylessRequests(findCaller));
      payments?.(made);
    },
    cookies,
    store,
    findCaller,
    // Counted apart from the pages: many files make one of these.
    limitKeyless: limitKeylessRequests(findCaller),
    dashboardUrl,
    log,
    metrics,
  });
  const pending = { addressOf: (peer: string | undefined) => findCaller(peer, undefined).blame, onDrop: () => {} };
  const server = await listen(app, config.host, parts.port, pending);
  if (parts.port === 0) url = url.replace(/:0$/, `:${server.port}`);
  stop.add('dashboard', async () => {
    draining.abort();
    await server.drain(drainSeconds);
  });
  return { dashboardPort: server.port, dashboardUrl: url };
}

/** Returns what adds the route for events of the payment provider; `null` without the secret that signs them. */
async function paymentWebhookOf(
  { config, store, metrics }: DashboardNeeds,
  provider: PaymentProvider | null,
  log: Log,
): Promise<DashboardPart | null> {
  if (config.stripeWebhookSecret === null) return null;
  const { readStripeEvents } = await import('../billing/stripe-provider.ts');
  const parts = { store, provider, seller: sellerOf(config), metrics, log };
  const secrets = { key: () => config.stripeKey, secret: () => config.stripeWebhookSecret ?? '' };
  return (app) => servePaymentWebhook(app, readStripeEvents(secrets), parts);
}

/** Returns the routes of OpenID Connect where the operator has configured a provider; its library is loaded only then. */
async function openidRoutesOf(parts: OpenidParts, config: Config): Promise<OpenRoute[]> {
  const { oidcIssuer: issuer, oidcClientId: clientId } = config;
  if (issuer === null || clientId === null) return [];
  const { openidRoutes } = await import('../dashboard/openid-routes.ts');
  return openidRoutes(parts, { issuer, clientId, clientSecret: () => config.oidcClientSecret });
}

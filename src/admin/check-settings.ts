import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { type Config, isLoopback } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { endsOfCertificates } from '../base/server-certificate.ts';
import { type Finding, judged, note, problem } from './doctor-finding.ts';

const dayMs = 86_400_000;
/** cert-manager renews a third of the lifetime before the end: so close to it, nothing renews. */
const soonDays = 7;

type BillingSettings = Pick<
  Config,
  'stripeKey' | 'stripeWebhookSecret' | 'smtpUrl' | 'sellerName' | 'sellerAddress' | 'sellerTax'
>;

/** Checks what invoices need, where something can be bought. */
export function checkBilling(config: BillingSettings): Finding[] {
  const { stripeKey, stripeWebhookSecret, smtpUrl, sellerName, sellerAddress, sellerTax } = config;
  const unsold = 'TRAWL_STRIPE_KEY is not set: events of Stripe are taken, and nothing can be bought.';
  if (stripeKey === null) return stripeWebhookSecret === null ? [] : [note('payments', unsold)];
  const missing = [
    sellerName === null && 'TRAWL_SELLER_NAME',
    sellerAddress === null && 'TRAWL_SELLER_ADDRESS',
    sellerTax === null && 'TRAWL_SELLER_TAX',
  ].filter(Boolean);
  const unnamed = `Invoices lack what ${missing.join(', ')} would say: the law may demand it.`;
  const unmailed = 'TRAWL_SMTP_URL is not set: invoices, declines and alerts reach nobody.';
  const unheard =
    'TRAWL_STRIPE_WEBHOOK_SECRET is not set: owners cannot buy packs, and refunds and disputes are not noticed.';
  return [
    judged('payments', stripeWebhookSecret !== null, 'Events of Stripe are taken.', unheard, 'note'),
    judged('invoices', missing.length === 0, 'Invoices name their seller.', unnamed, 'note'),
    ...(smtpUrl === null ? [note('mail', unmailed)] : []),
  ];
}

/** Checks the way of people to the dashboard, and tells which role serves it. */
export function checkDashboard({
  dashboardPort,
  dashboardUrl,
}: Pick<Config, 'dashboardPort' | 'dashboardUrl'>): Finding {
  const { protocol, hostname } = new URL(dashboardUrl);
  const isSafe = protocol === 'https:' || isLoopback(hostname);
  const open = `TRAWL_DASHBOARD_URL is ${dashboardUrl}, without TLS: passwords and sessions can be read on the network. Put a proxy with TLS in front and name its https:// URL.`;
  const served = dashboardPort === null ? 'role dashboard serves it apart' : `it is served at port ${dashboardPort}`;
  return judged('dashboard', isSafe, `People reach it at ${dashboardUrl}; ${served}.`, open, 'note');
}

/** Judges certificate, key and authorities of the TLS between the parts, as far as the settings name them. */
export function checkTls({ tlsCertFile, tlsKeyFile, tlsCaFile }: Config, now: number): Finding[] {
  return [
    ...(tlsCertFile && tlsKeyFile ? [checkCertificate(tlsCertFile, tlsKeyFile, now)] : []),
    ...(tlsCaFile ? [checkAuthorities(tlsCaFile, now)] : []),
  ];
}

function checkCertificate(certFile: string, keyFile: string, now: number): Finding {
  try {
    const cert = readFileSync(certFile, 'utf8');
    createSecureContext({ cert, key: readFileSync(keyFile, 'utf8') });
    const { subjectAltName = 'no host' } = new X509Certificate(cert);
    const end = Math.min(...endsOfCertificates(cert));
    const days = Math.floor((end - now) / dayMs);
    const text = `The certificate ${certFile} for ${subjectAltName} is valid until ${new Date(end).toISOString()}`;
    if (days < 0) return problem('tls', `${text}: it has ended, so no part trusts this one. Renew it.`);
    return judged('tls', days >= soonDays, `${text}.`, `${text}: renew it now.`, 'note');
  } catch (error) {
    return problem('tls', `${certFile} and ${keyFile} hold no certificate with its key: ${messageOf(error)}.`);
  }
}

function checkAuthorities(file: string, now: number): Finding {
  try {
    const all = endsOfCertificates(readFileSync(file, 'utf8'));
    const valid = all.filter((end) => end > now);
    const text = `${file} names ${all.length} authorities, ${valid.length} of them valid`;
    if (valid.length === 0) return problem('tls', `${text}: no part can be reached. Name one that is valid.`);
    const last = Math.max(...valid);
    const soon = `${text}, until ${new Date(last).toISOString()}: renew them now.`;
    return judged('tls', last - now >= soonDays * dayMs, `${text}.`, soon, 'note');
  } catch (error) {
    return problem('tls', `The authorities in ${file} cannot be read: ${messageOf(error)}.`);
  }
}

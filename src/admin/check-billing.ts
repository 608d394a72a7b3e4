import type { Config } from '../base/config.ts';
import { type Finding, findingOf } from './doctor-finding.ts';

type BillingSettings = Pick<
  Config,
  'stripeKey' | 'stripeWebhookSecret' | 'smtpUrl' | 'sellerName' | 'sellerAddress' | 'sellerTax'
>;

/** Checks what invoices need, where something can be bought. */
export function checkBilling({
  stripeKey,
  stripeWebhookSecret,
  smtpUrl,
  sellerName,
  sellerAddress,
  sellerTax,
}: BillingSettings): Finding[] {
  const unsold = 'TRAWL_STRIPE_KEY is not set: events of Stripe are taken, and nothing can be bought.';
  if (stripeKey === null) return stripeWebhookSecret === null ? [] : [findingOf(false, 'payments', unsold, 'note')];
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
    findingOf(
      stripeWebhookSecret !== null,
      'payments',
      stripeWebhookSecret === null ? unheard : 'Events of Stripe are taken.',
      'note',
    ),
    findingOf(missing.length === 0, 'invoices', missing.length === 0 ? 'Invoices name their seller.' : unnamed, 'note'),
    ...(smtpUrl === null ? [findingOf(false, 'mail', unmailed, 'note')] : []),
  ];
}

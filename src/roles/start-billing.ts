import type { Config } from '../base/config.ts';
import type { Shutdown } from '../base/shutdown.ts';
import { startPurchases } from '../billing/buy-due.ts';
import { startMails } from '../billing/send-mails.ts';
import type { Seller } from '../model/purchase.ts';
import type { SharedParts } from './shared.ts';

export function sellerOf({ sellerName, sellerAddress, sellerTax }: Config): Seller {
  return { name: sellerName ?? '', address: sellerAddress ?? '', tax: sellerTax ?? '' };
}

/** Starts purchases and mails where the operator has configured them; their libraries are loaded only then. */
export async function startBilling(parts: SharedParts, stop: Shutdown): Promise<void> {
  const { config, store, metrics } = parts;
  const log = parts.log.with({ part: 'billing' });
  const { stripeKey: key, stripeUrl: url, smtpUrl, mailFrom: from, dashboardUrl } = config;
  if (key !== null) {
    const { openStripe } = await import('../billing/stripe-provider.ts');
    const provider = openStripe({ key, url, now: store.clock.now });
    const purchases = startPurchases({ store, provider, seller: sellerOf(config), metrics, log });
    stop.add('purchases', purchases.close, 3);
  }
  if (smtpUrl !== null && from !== null) {
    const { openSmtp } = await import('../billing/mailer.ts');
    const mailer = openSmtp({ url: smtpUrl, from });
    const mails = startMails({ store, mailer, from, dashboardUrl, metrics, log });
    stop.add('mails', mails.close, 3);
  }
}

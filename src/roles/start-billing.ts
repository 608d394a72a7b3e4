import type { Config } from '../base/config.ts';
import type { Shutdown } from '../base/shutdown.ts';
import { startPurchases } from '../billing/buy-due.ts';
import type { PaymentProvider } from '../billing/payment-provider.ts';
import { startMails } from '../billing/send-mails.ts';
import { startCardWatch } from '../billing/watch-cards.ts';
import type { Seller } from '../model/purchase.ts';
import type { RecordStore } from '../store/script.ts';
import type { SharedParts } from './shared.ts';

export function sellerOf({ sellerName, sellerAddress, sellerTax }: Config): Seller {
  return { name: sellerName ?? '', address: sellerAddress ?? '', tax: sellerTax ?? '' };
}

/** Opens the payment provider, or returns `null` where the operator has configured none. */
export async function openProvider(config: Config, store: RecordStore): Promise<PaymentProvider | null> {
  if (config.stripeKey === null) return null;
  const { openStripe } = await import('../billing/stripe-provider.ts');
  return openStripe({ key: () => config.stripeKey ?? '', url: config.stripeUrl, now: store.clock.now });
}

/** Starts purchases and mails where the operator has configured them; their libraries are loaded only then. */
export async function startBilling(parts: SharedParts, stop: Shutdown): Promise<void> {
  const { config, store, seal, metrics } = parts;
  const log = parts.log.with({ part: 'billing' });
  const { mailFrom: from, dashboardUrl } = config;
  const provider = await openProvider(config, store);
  if (provider !== null) {
    const purchases = startPurchases({ store, provider, seller: sellerOf(config), metrics, log });
    stop.add('purchases', purchases.close, 3);
    stop.add('stored cards', startCardWatch({ store, provider, metrics, log }).close, 3);
  }
  if (config.smtpUrl !== null && from !== null) {
    const { openSmtp } = await import('../billing/mailer.ts');
    const send = openSmtp({ url: () => config.smtpUrl ?? '', from });
    const mails = startMails({ store, send, seal, from, dashboardUrl, metrics, log });
    stop.add('mails', mails.close, 3);
  }
}

import type { Offer, Purchase } from '../model/purchase.ts';
import type { StoredCard } from '../store/money/card-expiry.ts';
import type { TakenPurchase } from '../store/money/take-purchase.ts';

/** State of a payment at the provider; `pending` may still become either. */
export type Payment =
  | { readonly state: 'paid' | 'pending'; readonly payment: string }
  | { readonly state: 'declined'; readonly payment: string; readonly reason: string };

/** Answer or event of the provider about a payment of ours. `disputed` names the payment alone. `at`: when it happened, in milliseconds. */
export type PaymentNews =
  | { readonly kind: 'paid'; readonly purchase: Purchase; readonly payment: string; readonly at: number }
  | { readonly kind: 'declined'; readonly purchase: Purchase; readonly payment: string; readonly reason: string }
  | { readonly kind: 'refunded'; readonly purchase: Purchase; readonly payment: string }
  | { readonly kind: 'disputed'; readonly payment: string }
  | {
      readonly kind: 'stored';
      readonly account: string;
      readonly customer: string;
      readonly payment_method: string;
      readonly at: number;
    };

/** Visit of an owner to the provider's own page. */
export interface CheckoutOrder {
  readonly id: string;
  readonly account: { readonly id: string; readonly name: string };
  readonly email: string;
  /** Customer that the provider knows already. */
  readonly customer: string | null;
  /** Pack to pay for; `null` stores a payment method and takes no money. */
  readonly offer: Offer | null;
  /** Page of the dashboard that the owner comes back to without having paid. */
  readonly returnUrl: string;
  /** Page that they come back to afterwards. */
  readonly paidUrl: string;
}

/** Takes money. Every request for one purchase names its id as idempotency key, so that it is charged at most once. */
export interface PaymentProvider {
  /** Charges the stored payment method while its owner is away. Throws when the outcome is not known: then ask again. */
  charge(purchase: TakenPurchase): Promise<Payment>;
  /** Returns what became of a purchase whose earlier try may have been paid; `null` when the provider knows no payment for it. */
  find(purchase: TakenPurchase): Promise<Payment | null>;
  /** Returns the URL at which an owner pays for a pack or stores a payment method; events tell what became of it. */
  checkout(order: CheckoutOrder): Promise<string>;
  /** Returns the purchase that a payment is for; `null` when it is not ours. Throws when the provider gives no answer. */
  purchase(payment: string): Promise<Purchase | null>;
  /** Returns the card of a stored payment method; `null` when it is none, or is gone. */
  card(paymentMethod: string): Promise<StoredCard | null>;
}

/**
 * Reads an event of the provider, whose repetitions have the same id; `null` for one that is none of ours, `no_object` for one that tells
 * nothing of its object. Throws a Refusal for one that the provider did not sign.
 */
export type ReadEvent = (
  body: Buffer,
  signature: string,
) => { readonly id: string; readonly news: PaymentNews } | 'no_object' | null;

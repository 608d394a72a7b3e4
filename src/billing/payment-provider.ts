import type { Purchase } from '../model/purchase.ts';
import type { TakenPurchase } from '../store/money/take-purchase.ts';

/** State of a payment at the provider; `pending` may still become either. */
export type Payment =
  | { readonly state: 'paid' | 'pending'; readonly payment: string }
  | { readonly state: 'declined'; readonly payment: string; readonly reason: string };

/** Event of the provider about a payment of ours. `dispute` names the payment alone. */
export type PaymentEvent =
  | { readonly kind: 'paid'; readonly purchase: Purchase; readonly payment: string }
  | { readonly kind: 'declined'; readonly purchase: Purchase; readonly payment: string; readonly reason: string }
  | { readonly kind: 'refunded'; readonly purchase: Purchase; readonly payment: string }
  | { readonly kind: 'disputed'; readonly payment: string };

/** Takes money. Every request for one purchase names its id as idempotency key, so that it is charged at most once. */
export interface PaymentProvider {
  /** Charges the stored payment method while its owner is away. Throws when the outcome is not known: then ask again. */
  charge(purchase: TakenPurchase): Promise<Payment>;
}

/** Reads the provider's events. */
export interface PaymentEvents {
  /** Returns `null` for an event that is none of ours; throws a Refusal for one that the provider did not sign. */
  read(body: Buffer, signature: string): PaymentEvent | null;
}

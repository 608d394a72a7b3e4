import { applyPayment, type PaymentBooks } from './apply-payment.ts';
import type { PaymentEvents } from './payment-provider.ts';

/** Largest event that is read. */
export const maxEventBytes = 1_048_576;

/**
 * Takes what the provider posts: verifies the signature over the very bytes, then writes the event into the record. The
 * provider repeats an event that is not answered in time, and may send it twice or late: that changes nothing.
 */
export async function receivePaymentEvent(
  books: PaymentBooks,
  events: PaymentEvents,
  body: Buffer,
  signature: string,
): Promise<void> {
  const event = events.read(body, signature);
  if (event !== null) await applyPayment(books, event);
}

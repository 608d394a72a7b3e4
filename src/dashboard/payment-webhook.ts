import express, { type Express } from 'express';
import { errorReply, sendReply } from '../api/reply.ts';
import { applyPayment, type PaymentBooks } from '../billing/apply-payment.ts';
import type { PaymentEvents } from '../billing/payment-provider.ts';

const maxBody = '1mb';

/** Takes the events of the payment provider. Their signature covers the bytes of the body, so these are not parsed before. */
export function servePaymentWebhook(app: Express, events: PaymentEvents, books: PaymentBooks): void {
  app.post('/stripe/webhook', express.raw({ type: () => true, limit: maxBody }), async (req, res) => {
    try {
      const body = Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
      const event = events.read(body, req.get('stripe-signature') ?? '');
      if (event !== null) await applyPayment(books, event.news, event.id);
      sendReply(res, { status: 200, body: { received: true } });
    } catch (error) {
      const refused = errorReply(error);
      // The provider sends it again.
      if (refused.status >= 500) books.log.error('an event of the payment provider was not carried out', { error });
      sendReply(res, refused);
    }
  });
}

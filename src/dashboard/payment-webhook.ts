import express, { type Express, type Request } from 'express';
import { errorReply, sendReply } from '../api/reply.ts';
import { refuse } from '../base/errors.ts';
import { applyPayment, type PaymentParts } from '../billing/apply-payment.ts';
import type { ReadEvent } from '../billing/payment-provider.ts';

const maxBody = '1mb';
const noObject = 'the event has no data.object: the endpoint must get snapshot payloads, not thin ones';
/**
 * Anybody may send bodies here, and their signature is judged when they are whole: more at once would fill the memory. The oldest gives
 * way, because the provider sends a body at once, and who holds many back sends none.
 */
const maxBodies = 64;

/** Takes the events of the payment provider. Their signature covers the bytes of the body, so these are not parsed before. */
export function servePaymentWebhook(app: Express, readEvent: ReadEvent, parts: PaymentParts): void {
  const reading = new Set<Request>();
  app.post('/stripe/webhook', (req, _res, next) => {
    const [oldest] = reading;
    if (oldest && reading.size >= maxBodies) {
      reading.delete(oldest);
      oldest.destroy();
    }
    reading.add(req);
    for (const over of ['end', 'close']) req.once(over, () => reading.delete(req));
    next();
  });
  // The provider compresses nothing, and a kilobyte can unpack to a thousand.
  const readRaw = express.raw({ type: () => true, limit: maxBody, inflate: false });
  app.post('/stripe/webhook', readRaw, async (req, res) => {
    try {
      const body = Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
      const event = readEvent(body, req.get('stripe-signature') ?? '');
      if (event === 'no_object') {
        parts.log.error(noObject);
        throw refuse('bad_request', `Bad Request: ${noObject}`);
      }
      if (event !== null) await applyPayment(parts, event.news, event.id);
      sendReply(res, { status: 200, body: { received: true } });
    } catch (error) {
      const refused = errorReply(error);
      // The provider sends it again.
      if (refused.status >= 500) parts.log.error('an event of the payment provider was not carried out', { error });
      sendReply(res, refused);
    }
  });
}

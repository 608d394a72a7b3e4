import { messageOf } from '../base/errors.ts';
import { type HttpAnswer, ProxyAway, ProxyRefusal, sendRequest } from '../base/http-client.ts';
import type { ServerAddress } from '../base/server-address.ts';
import type { WebhookResult } from '../model/webhook-attempts.ts';

export interface WebhookRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const maxAnswerBytes = 64 * 1024;

/** Posts to an address that a caller named: only through the proxy, over a connection of its own, following no redirect. */
export async function sendWebhook(
  proxy: ServerAddress,
  { url, headers, body }: WebhookRequest,
  maxMs: number,
  stop: AbortSignal,
): Promise<WebhookResult> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(maxMs)]);
  const framed = { ...headers, 'content-length': String(Buffer.byteLength(body)) };
  const sent = { to: new URL(url), proxy, method: 'POST', headers: framed, body, signal } as const;
  return sendRequest({ ...sent, maxAnswerBytes, ignoresBody: true }).then(
    ({ status }: HttpAnswer): WebhookResult => ({ is: 'answered', status }),
    (error: unknown): WebhookResult => {
      if (error instanceof ProxyRefusal) return readVerdict(error);
      if (error instanceof ProxyAway) return { is: 'unsent', why: error.message };
      if (signal.aborted && !stop.aborted) return { is: 'hung', why: 'no answer in time' };
      return { is: 'failed', why: messageOf(error) };
    },
  );
}

/** Only a refusal of the address is final; 504 says that the receiver, or DNS, has not answered in time. */
function readVerdict({ status, verdict, message }: ProxyRefusal): WebhookResult {
  const isFinal = status === 403 && verdict?.startsWith('refused');
  const is = isFinal ? 'refused' : status === 504 ? 'hung' : 'failed';
  return { is, why: verdict ?? message };
}

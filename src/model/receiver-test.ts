import type { WebhookResult } from './webhook-attempts.ts';

/** A test of a receiver as its page shows it: waiting for a controller, being sent, or ended. */
export type ReceiverTest =
  | { readonly state: 'waiting' | 'sending' }
  | {
      readonly state: 'ended';
      /** A webhook would count as delivered. */
      readonly delivered: boolean;
      readonly status: number | null;
      readonly took_ms: number;
      readonly sentence: string;
    };

/** Verdicts of the egress proxy, and what the sender itself says. */
const sentences: Readonly<Record<string, string>> = {
  refused_request: 'The proxy for webhooks does not take this address, so nothing was sent.',
  refused_name: 'This host name is not a public one, so nothing was sent.',
  refused_address: 'The address of this host is not public, so nothing was sent.',
  refused_port: 'Webhooks do not go to this port, so nothing was sent.',
  failed_dns: 'The name of this host was not found.',
  failed_connect: 'The host took no connection.',
  failed_answer: 'The host broke the connection off, or its answer was no HTTP.',
  limited: 'Too many connections are open at this moment: try again later.',
  stopped: 'The service was restarted meanwhile: the post may have arrived. Send another one.',
  unsealed: 'A stored secret cannot be read any more: make a new signing secret, or start a new job with its webhook.',
};
const brokenOff = 'The connection broke off before an answer came.';
const proxyAway = 'The proxy through which webhooks go is away at this moment, so nothing was sent: try again.';
const untrusted = 'The host has no certificate that is trusted for its name.';

/** Returns what a person reads of a test. Texts of errors are not shown: they may name hosts of the service. */
export function describeTest(end: WebhookResult, tookMs: number): ReceiverTest {
  const told = { state: 'ended', took_ms: Math.round(tookMs) } as const;
  if (end.is !== 'answered')
    return { ...told, delivered: false, status: null, sentence: explain(end.is, end.why, tookMs) };
  const { status } = end;
  const delivered = status >= 200 && status < 300;
  const answer = `The receiver answered ${status} after ${told.took_ms} ms.`;
  return { ...told, delivered, status, sentence: delivered ? answer : `${answer} ${judge(status)}` };
}

function judge(status: number): string {
  if (status >= 300 && status < 400) return 'Redirects are not followed: give the address to which it leads.';
  return 'It must answer 2xx: other answers count as not delivered.';
}

function explain(is: Exclude<WebhookResult['is'], 'answered'>, why: string, tookMs: number): string {
  if (is === 'unsent') return proxyAway;
  if (Object.hasOwn(sentences, why)) return sentences[why] ?? brokenOff;
  if (is === 'hung') return `The receiver gave no answer within ${Math.max(1, Math.round(tookMs / 1000))} s.`;
  return /certificate|altnames/i.test(why) ? untrusted : brokenOff;
}

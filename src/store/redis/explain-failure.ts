import { codeOf, innermost, isRefusal, LostAnswer, messageOf, refusals } from '../../base/errors.ts';
import { redactText } from '../../base/redact.ts';

const urlSetting = 'TRAWL_REDIS_URL';

/** Advice for the operator by words of a reply of Redis, an error code or the message of an error: the first match counts. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [/^(WRONGPASS|NOAUTH|ERR AUTH|ERR invalid password)/, `correct user and password in ${urlSetting}`],
  [/^NOPERM/, 'give this user the rights that docs/operate.md lists under "Rights in Redis"'],
  [/^OOM/, 'raise maxmemory of Redis, or TRAWL_REDIS_MEMORY for that of trawl up'],
  [/^READONLY/, `${urlSetting} names a replica: name the primary, the Sentinels or every node of the Cluster there`],
  [/^MISCONF/, 'Redis cannot write to its disk: its log says why'],
  [/^LOADING/, 'Redis still reads its file: repeat the command once it has'],
  [/^BUSY/, 'a script keeps Redis busy: repeat the command later'],
  [/^(NOREPLICAS|MASTERDOWN|No replica had)/, 'bring the primary and its replicas together again'],
  [/^(CLUSTERDOWN|TRYAGAIN|MOVED|ASK)/, 'look after the nodes of the Cluster'],
  [/\bECONNREFUSED\b/, `start Redis, or correct host and port in ${urlSetting}`],
  [/\b(ENOENT|EACCES)\b/, 'start trawl up again, as the user who owns its folder'],
  [/\b(ENOTFOUND|EAI_AGAIN)\b/, `correct the host in ${urlSetting}, or the name service of this machine`],
  [/\bCERT_(HAS_EXPIRED|NOT_YET_VALID)\b/, 'renew the certificate of Redis, or correct the clock of this machine'],
  [
    /\b(CERT_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+|ERR_TLS_CERT_\w+)/,
    `the host in ${urlSetting} must be one of the certificate, and NODE_EXTRA_CA_CERTS must name the file of its authority`,
  ],
  [
    /\b(EPROTO|ERR_SSL_\w+|ECONNRESET|Socket closed)/,
    `look into the log of Redis; rediss:// in ${urlSetting} needs a port with TLS, redis:// one without`,
  ],
  [
    /\b(EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|Connection timeout|No answer within)/,
    `Redis hangs, or a network lies between: check both, and that rediss:// in ${urlSetting} names a port with TLS`,
  ],
];

/** Returns Redis' own reply or the error of its connection, and what the operator can do; without any login. */
export function explainFailure(cause: unknown): string {
  const words = wordsOf(cause);
  const code = codeOf(cause);
  const [, remedy] = remedies.find(([seen]) => seen.test(words) || seen.test(code)) ?? [];
  return remedy === undefined ? words : `${words}: ${remedy}`;
}

/** Returns true for a reply that a connection in use gets when the rights of its user do not suffice, or were changed. */
export function isRefusedByRedis({ message }: Error): boolean {
  return /^(NOPERM|NOAUTH)\b/.test(message);
}

/**
 * Returns the sentence of an error for operators. Answers to callers keep the general one of `unavailable`, because the cause is an
 * internal matter there.
 */
export function sentenceForOperator(error: Error): string {
  if (isRefusedByRedis(error)) return `Redis refuses: ${explainFailure(error)}`;
  const { message, cause } = error;
  if (!(isRefusal(error, 'unavailable') && cause instanceof Error)) return message;
  if (message !== refusals.unavailable.sentence) {
    const words = wordsOf(innermost(cause));
    return message.includes(words) ? message : `${message}: ${words}`;
  }
  if (/^[A-Z]{3,} /.test(cause.message)) return `Redis refuses: ${explainFailure(cause)}`;
  const lost =
    error instanceof LostAnswer ? '. The change may have been made all the same: look before it is repeated' : '';
  return `Redis did not answer: ${explainFailure(cause)}${lost}`;
}

/** An `AggregateError` of several addresses has no message of its own. */
function wordsOf(error: unknown): string {
  const errors: readonly unknown[] = error instanceof AggregateError && error.message === '' ? error.errors : [error];
  const texts = errors.map(messageOf);
  return redactText(texts.join(', ')).replace(/\.$/, '');
}

const hidden = '***';
const maxTextLength = 2_000;
const maxDepth = 6;
const maxValues = 1_000;

/** Compared with the small letters of a field's name alone, so that x-api-key, x_api_key and xApiKey are one. */
const secretName = /authorization|cookie|apikey|stripekey|secret|password|token|credential/;
const apiKey = /trawl_[A-Za-z0-9]+_[A-Za-z0-9]{43,}/g;
const awsKey = /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g;
const awsSigned = /\b(X-Amz-(?:Credential|Security-Token|Signature)|Signature)=[^\s"'&,;]+/gi;
const bearer = /\b(Bearer)\s+[^\s"',;]+/gi;

interface Redaction {
  readonly above: Set<object>;
  left: number;
}

/** Returns fields as plain JSON values, without secrets and bounded in size; never throws, whatever they hold. */
export function redactFields(fields: object): object {
  const read = redactValue(fields, { above: new Set(), left: maxValues });
  return read instanceof Object ? read : { fields: read };
}

/** Returns a text without API keys, bearer values, S3 keys and signatures and private parts of URLs, cut to 2,000 characters. */
export function redactText(text: string): string {
  // Cut last: a key that the cut divides would no longer look like one.
  const clean = text
    .replace(apiKey, hidden)
    .replace(awsKey, hidden)
    .replace(awsSigned, `$1=${hidden}`)
    .replace(bearer, `$1 ${hidden}`)
    .replace(/[^\s"'<>]+/g, (word) => (word.includes('/') ? stripUrl(word) : word));
  return clean.length > maxTextLength ? `${clean.slice(0, maxTextLength - 1)}…` : clean;
}

function stripUrl(word: string): string {
  const end = word.search(/[?#]/);
  return (end < 0 ? word : word.slice(0, end)).replace(/\/\/[^/]*@/g, '//');
}

function redactValue(value: unknown, reading: Redaction): unknown {
  reading.left -= 1;
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'function') return '[function]';
  if (typeof value === 'bigint' || typeof value === 'symbol') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (reading.above.has(value)) return '[cycle]';
  if (reading.above.size > maxDepth) return '[deeper]';
  reading.above.add(value);
  try {
    return redactObject(value, reading);
  } catch {
    // A proxy or an invalid date may throw on any question; a log line is no place to fail.
    return '[unreadable]';
  } finally {
    reading.above.delete(value);
  }
}

function redactObject(value: object, reading: Redaction): unknown {
  if (value instanceof Date) return value.toISOString();
  if (value instanceof URL) return redactText(value.href);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof Map) return redactMembers([...value.keys()], (key) => value.get(key), reading);
  if (Array.isArray(value) || value instanceof Set) return redactItems(value, reading);
  const names =
    value instanceof Error ? ['message', 'stack', 'cause', 'errors', ...Object.keys(value)] : Object.keys(value);
  return redactMembers(names, (name) => Reflect.get(value, name), reading);
}

function redactItems(items: Iterable<unknown>, reading: Redaction): unknown[] {
  const read: unknown[] = [];
  for (const item of items) {
    if (reading.left <= 0) break;
    read.push(redactValue(item, reading));
  }
  return read;
}

function redactMembers<Name>(names: readonly Name[], get: (name: Name) => unknown, reading: Redaction): object {
  const read: [string, unknown][] = [];
  for (const name of names) {
    if (reading.left <= 0) break;
    read.push([redactText(String(name)), redactMember(String(name), () => get(name), reading)]);
  }
  return Object.fromEntries(read);
}

function redactMember(name: string, get: () => unknown, reading: Redaction): unknown {
  if (secretName.test(name.toLowerCase().replace(/[^a-z]/g, ''))) return hidden;
  try {
    return redactValue(get(), reading);
  } catch {
    // A getter may throw; its field then says so.
    return '[unreadable]';
  }
}

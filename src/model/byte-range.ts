export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

interface PartialHeaders {
  readonly range?: string | undefined;
  readonly 'if-range'?: string | undefined;
  readonly 'if-none-match'?: string | undefined;
}

/** Returns the one part that is asked for; a range that is not understood, has several parts or is for another file means the whole. */
export function readRange(headers: PartialHeaders, bytes: number, etag: string): ByteRange | 'whole' | 'unsatisfiable' {
  const condition = headers['if-range'];
  const asked = /^bytes=(?:(\d+)-(\d*)|-(\d+))$/i.exec(headers.range ?? '');
  if (asked === null || (condition !== undefined && condition !== etag)) return 'whole';
  const [, first, last, length] = asked;
  if (first === undefined) return rangeWithin(Math.max(bytes - Number(length), 0), bytes - 1, bytes);
  if (last && Number(last) < Number(first)) return 'whole';
  return rangeWithin(Number(first), last ? Math.min(Number(last), bytes - 1) : bytes - 1, bytes);
}

export function isHeld(headers: PartialHeaders, etag: string): boolean {
  const held = (headers['if-none-match'] ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''));
  return held.includes(etag) || held.includes('*');
}

function rangeWithin(first: number, last: number, bytes: number): ByteRange | 'unsatisfiable' {
  return first < bytes ? { first, last } : 'unsatisfiable';
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const shortened = /^[A-Za-z0-9_-]{22}$/;

/** Returns the id of a job in 22 characters instead of 36: every index keeps it for as long as the job. */
export function shortId(id: string): string {
  return uuid.test(id) ? Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url') : id;
}

/** Returns the id that `shortId` shortened. */
export function longId(short: string): string {
  if (!shortened.test(short)) return short;
  const hex = Buffer.from(short, 'base64url').toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

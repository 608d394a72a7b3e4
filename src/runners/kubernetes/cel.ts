const quantities = ['cpu', 'memory', 'ephemeral-storage', 'sizeLimit'];

/** Returns CEL that compares the value at a path, such as `object.spec`, with another; the API server writes quantities in another form (3000000000 is 3G). */
export function equals(path: string, value: unknown): string {
  if (!hasQuantity(value)) return `${path} == ${literal(value)}`;
  const parts = Object.entries(value as Readonly<Record<string, unknown>>).map(([key, part]) => {
    const index = Array.isArray(value) ? key : literal(key);
    const member = `${path}[${index}]`;
    const isThere = Array.isArray(value) ? '' : `${index} in ${path} && `;
    const isSame = quantities.includes(key)
      ? `quantity(${member}).compareTo(quantity(${literal(part)})) == 0`
      : equals(member, part);
    return `${isThere}${isSame}`;
  });
  return [`${path}.size() == ${parts.length}`, ...parts].join(' && ');
}

function hasQuantity(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, part]) => quantities.includes(key) || hasQuantity(part));
}

/** Returns CEL of a JSON value. Members of one list or map may differ in their type only when they are dynamic. */
export function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((part) => `dyn(${literal(part)})`).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}: dyn(${literal(part)})`);
  return `{${members.join(', ')}}`;
}

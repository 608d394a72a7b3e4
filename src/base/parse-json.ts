/** Returns the value of a JSON text; `undefined` for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns true for a JSON object, which is neither `null` nor a list. */
export function isJsonObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/** Returns the members of a JSON object; none of any other value. */
export function membersOf(json: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(json) ? json : {};
}

/** Returns false for a text with a percent sign that does not encode UTF-8: a `%` of its own must be written as `%25`. */
export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    // It throws for nothing else.
    return false;
  }
}

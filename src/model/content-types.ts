/** Extension of a delivered file by its content type; nothing else is ever delivered. */
export const extensions = {
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'video/x-matroska': 'mkv',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/wav': 'wav',
  'audio/webm': 'webm',
  'audio/x-matroska': 'mka',
} as const satisfies Readonly<Record<string, string>>;

export type ContentType = keyof typeof extensions;

export const contentTypes: readonly string[] = Object.keys(extensions);

export function isContentType(text: string): text is ContentType {
  return Object.hasOwn(extensions, text);
}

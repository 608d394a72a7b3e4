import type { Seal } from '../base/seal.ts';
import { extensions, isContentType } from './content-types.ts';
import type { Job } from './job.ts';

/** Result of checking a link: the job and file name, or the reason for which it opens nothing (D85). */
type LinkCheck =
  | { readonly is: 'good'; readonly job: string; readonly name: string }
  | { readonly is: 'altered' }
  | { readonly is: 'expired' };

interface SignedLink {
  readonly job: string;
  readonly name: string;
  /** Seconds since 1970, as text. */
  readonly exp: string;
  readonly sig: string;
}

const purpose = 'link';
const maxNameBytes = 150;

/** Returns a signed link to the file of a job, good until `expiresAt`; `null` when there is no file. */
export function makeLink(job: Job, expiresAt: number, publicUrl: string, sign: Seal['sign']): string | null {
  if (job.delivered === null || job.removed_at !== null) return null;
  const name = displayName(job.metadata?.title, job.delivered.content_type);
  const exp = String(Math.floor(expiresAt / 1000));
  const sig = sign(purpose, textOf({ job: job.id, name, exp }));
  return `${publicUrl}/files/${job.id}/${encodeStrictly(name)}?exp=${exp}&sig=${sig}`;
}

/** Judges the path and query of a request for a file. The path may be encoded in another way than it was made. */
export function checkLink(target: string, now: number, verify: Seal['verify']): LinkCheck {
  const link = readLink(target);
  if (link === null || !verify(purpose, textOf(link), link.sig)) return { is: 'altered' };
  return now < Number(link.exp) * 1000 ? { is: 'good', job: link.job, name: link.name } : { is: 'expired' };
}

/** Returns a file name from a title: in characters that every file system takes and that do not disguise the extension. */
export function displayName(title: unknown, contentType: string): string {
  const extension = isContentType(contentType) ? extensions[contentType] : 'bin';
  // Of the invisible characters only the two joiners stay: Persian, Indic scripts and emoji are written with them.
  const words = (typeof title === 'string' ? title : '')
    .normalize('NFC')
    .replace(/(?:(?![\u200c\u200d])[\p{C}\p{Z}\\/:*?"<>|])+/gu, ' ')
    .replace(/^[\s.~-]+/, '')
    .replace(new RegExp(`\\.${extension} ?$`, 'i'), '');
  const stem = cutBytes(words, maxNameBytes - extension.length - 1).replace(/[\s.\u200c\u200d]+$/, '');
  return `${stem || 'media'}.${extension}`;
}

/** Returns the Content-Disposition that saves a file under its name, also in programs that know only ASCII (RFC 6266). */
export function dispositionOf(name: string): string {
  const ascii = name.replace(/[^ -~]|["\\%]/gu, '_');
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encodeStrictly(name)}`;
}

function readLink(target: string): SignedLink | null {
  const [, path = '', query = ''] = /^\/files\/([^?#]+)\?([^#]*)$/.exec(target) ?? [];
  const [job, name, ...deeper] = path.split('/').map(decode);
  const parameters = new URLSearchParams(query);
  const [[exp, ...moreExp], [sig, ...moreSig]] = [parameters.getAll('exp'), parameters.getAll('sig')];
  if (!job || !name || !exp || !sig || deeper.length + moreExp.length + moreSig.length > 0) return null;
  return { job, name, exp, sig };
}

/** Returns the text that is signed: no two links have the same. */
function textOf({ job, name, exp }: Omit<SignedLink, 'sig'>): string {
  return JSON.stringify([job, name, exp]);
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    // A percent sign without two digits, or bytes that are no UTF-8.
    return null;
  }
}

/** Percent-encodes all but what neither a path nor a header parameter (RFC 8187) gives a meaning to. */
function encodeStrictly(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Keeps the beginning of a text that fits into some bytes of UTF-8, never half a character. */
export function cutBytes(text: string, bytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes));
  return text.slice(0, read);
}

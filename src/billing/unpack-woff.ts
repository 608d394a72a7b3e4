import { inflateSync } from 'node:zlib';

const woffHeadBytes = 44;
const woffEntryBytes = 20;
const headBytes = 12;
const entryBytes = 16;

/** Returns the font of a WOFF file as it was before its tables were deflated: pdfkit inflates all glyphs again for each one, 54 s for a name. */
export function unpackWoff(woff: Buffer): Buffer {
  const count = woff.readUInt16BE(12);
  const head = Buffer.alloc(headBytes + entryBytes * count);
  woff.copy(head, 0, 4, 8);
  head.writeUInt16BE(count, 4);
  const parts: Buffer[] = [head];
  let offset = head.length;
  for (let n = 0; n < count; n++) {
    const from = woffHeadBytes + woffEntryBytes * n;
    const [start, packed, length] = [4, 8, 12].map((at) => woff.readUInt32BE(from + at)) as [number, number, number];
    const stored = woff.subarray(start, start + packed);
    const to = headBytes + entryBytes * n;
    // Tag and checksum, then the place of the table.
    woff.copy(head, to, from, from + 4);
    woff.copy(head, to + 4, from + 16, from + 20);
    head.writeUInt32BE(offset, to + 8);
    head.writeUInt32BE(length, to + 12);
    const padding = Buffer.alloc((4 - (length % 4)) % 4);
    parts.push(packed < length ? inflateSync(stored, { maxOutputLength: length }) : stored, padding);
    offset += length + padding.length;
  }
  return Buffer.concat(parts);
}

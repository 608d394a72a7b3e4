import type { FileHandle } from 'node:fs/promises';

/** A box of an MP4 (ISO/IEC 14496-12, 4.2) and where in its file that lies which the box holds. */
interface Mp4Box {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
}

/** Yields the boxes between two bytes of a file, up to one whose size is none. */
export async function* boxesOf(handle: FileHandle, from: number, end: number): AsyncGenerator<Mp4Box> {
  for (let at = from; at + 8 <= end; ) {
    const { buffer } = await handle.read({ buffer: Buffer.alloc(16), position: at });
    const size = buffer.readUInt32BE(0);
    const next = at + (size === 1 ? Number(buffer.readBigUInt64BE(8)) : size || end - at);
    const start = at + (size === 1 ? 16 : 8);
    yield { kind: buffer.toString('latin1', 4, 8), start, end: Math.min(next, end) };
    if (next < start) return;
    at = next;
  }
}

/** A film with a dozen tracks has some hundred boxes in its index. */
const maxBoxes = 4096;

/** Yields the boxes to which kinds lead, each inside the one before; `null` stands for every kind. Other formats have none. */
export async function* boxesAlong(
  handle: FileHandle,
  [wanted, ...inner]: readonly (string | null)[],
  from: number,
  to: number,
  left = { boxes: maxBoxes },
): AsyncGenerator<Mp4Box> {
  for await (const box of boxesOf(handle, from, to)) {
    if (left.boxes-- <= 0) return;
    if (wanted === null || box.kind === wanted) {
      // Behind its head, the box of entries tells their number.
      const first = box.kind === 'stsd' ? box.start + 8 : box.start;
      if (inner.length === 0) yield box;
      else yield* boxesAlong(handle, inner, first, box.end, left);
    }
    // What follows the index of a film in pieces may be thousands of them.
    if (box.kind === 'moov') return;
  }
}

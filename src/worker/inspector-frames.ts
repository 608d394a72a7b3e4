/** Message of the inspector parent about one of its children: a piece of output, or the exit code. */
export type Frame =
  | { readonly is: 'out'; readonly id: number; readonly bytes: Buffer }
  | { readonly is: 'end'; readonly id: number; readonly code: number };

/** Returns a parser of the parent's output: the line `ready`, then frames, cut anywhere. It throws on anything else. */
export function makeFrameReader(ready: () => void, told: (frame: Frame) => void): (piece: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  const readOne = (): boolean => {
    const end = rest.indexOf('\n');
    if (end < 0) return false;
    const head = rest.toString('latin1', 0, end);
    if (head === 'ready') {
      rest = rest.subarray(end + 1);
      ready();
      return true;
    }
    const [, id, is, number] = /^(\d+) (out|end) (-?\d+)$/.exec(head) ?? [];
    if (is === undefined) throw new Error('the inspector says what is no frame');
    const size = is === 'out' ? Number(number) : 0;
    if (rest.length < end + 1 + size) return false;
    const bytes = rest.subarray(end + 1, end + 1 + size);
    rest = rest.subarray(end + 1 + size);
    told(is === 'out' ? { is, id: Number(id), bytes } : { is: 'end', id: Number(id), code: Number(number) });
    return true;
  };
  return (piece) => {
    rest = Buffer.concat([rest, piece]);
    while (readOne()) {
      // Each turn takes one frame off the rest.
    }
  };
}

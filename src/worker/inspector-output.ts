const maxLineLength = 2 ** 20;
/** The driver writes one; a library may print some. */
const maxLines = 1000;

/** Message of the inspector parent about one of its children: its process id, a piece of output, or the exit code. */
export type Frame =
  | { readonly is: 'pid'; readonly id: number; readonly pid: number }
  | { readonly is: 'out'; readonly id: number; readonly bytes: Buffer }
  | { readonly is: 'end'; readonly id: number; readonly code: number };

/** Returns a parser of the parent's output: the line `ready`, then frames, cut anywhere. It throws on anything else. */
export function makeFrameReader(onReady: () => void, onFrame: (frame: Frame) => void): (piece: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  const readOne = (): boolean => {
    const end = rest.indexOf('\n');
    if (end < 0) return false;
    const head = rest.toString('latin1', 0, end);
    if (head === 'ready') {
      rest = rest.subarray(end + 1);
      onReady();
      return true;
    }
    const [, id, is, number] = /^(\d+) (pid|out|end) (-?\d+)$/.exec(head) ?? [];
    if (is === undefined) throw new Error('the inspector says what is no frame');
    const size = is === 'out' ? Number(number) : 0;
    if (rest.length < end + 1 + size) return false;
    const bytes = rest.subarray(end + 1, end + 1 + size);
    rest = rest.subarray(end + 1 + size);
    if (is === 'out') onFrame({ is, id: Number(id), bytes });
    else if (is === 'pid') onFrame({ is, id: Number(id), pid: Number(number) });
    else onFrame({ is: 'end', id: Number(id), code: Number(number) });
    return true;
  };
  return (piece) => {
    rest = Buffer.concat([rest, piece]);
    while (readOne()) {
      // Each turn takes one frame off the rest.
    }
  };
}

/**
 * Returns a function that cuts what one child says into lines. The driver writes ASCII and few, short lines: a longer one is left
 * out, so is all after 1,000, and each byte is looked at once, because one process hears the children of all accounts.
 */
export function makeLineReader(onLine: (line: string) => void): (bytes: Buffer) => void {
  let pieces: string[] = [];
  let length = 0;
  let linesLeft = maxLines;
  const add = (piece: string) => {
    length += piece.length;
    if (length <= maxLineLength) pieces.push(piece);
  };
  return (bytes) => {
    if (linesLeft === 0) return;
    const [beginning = '', ...lines] = bytes.toString('latin1').split('\n');
    add(beginning);
    for (const line of lines.slice(0, linesLeft)) {
      linesLeft--;
      if (length <= maxLineLength) onLine(pieces.join(''));
      pieces = [];
      length = 0;
      add(line);
    }
  };
}

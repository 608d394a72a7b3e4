import { statfsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { makeSeal } from '../../src/base/seal.ts';
import { openFolder } from '../../src/objects/folder-store.ts';

const pieceBytes = 65_536;

/** A program that works in an object folder: `upload=BYTES`, `most=BYTES` (an upload, with the most bytes of the disk that it took meanwhile), `stop=BYTES` (an upload that goes no further), `see=KEY`, `remove=PREFIX`, `left`. */
const [folder = '', ...steps] = process.argv.slice(2);
const store = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
console.log('"ready"');
for (const step of steps) {
  const [what = '', of = ''] = step.split('=');
  const answer = await run(what, of).catch(({ code, message }) => ({ code, message }));
  console.log(JSON.stringify(answer ?? null));
}

async function run(what: string, of: string): Promise<unknown> {
  switch (what) {
    case 'upload':
      return store.receive(await store.permit(`job/1/${of}`, { bytes: Number(of) }), pieces(Number(of)));
    case 'stop':
      return store.receive(await store.permit(`job/1/${of}`, { bytes: Number(of) + 1 }), endless(Number(of)));
    case 'most': {
      let most = 0;
      const sampled = (async function* () {
        for await (const piece of pieces(Number(of))) {
          yield piece;
          most = Math.max(most, takenBytes());
        }
      })();
      const permit = await store.permit(`job/1/${of}`, { bytes: Number(of) });
      return { code: await store.receive(permit, sampled).catch(({ code }) => code), most };
    }
    case 'see':
      return store.see(of);
    case 'remove':
      return store.remove(of);
    default:
      return readdir(join(folder, '.uploads'));
  }
}

function takenBytes(): number {
  const { blocks, bfree, bsize } = statfsSync(folder);
  return (blocks - bfree) * bsize;
}

async function* pieces(bytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes; at += pieceBytes) yield Buffer.alloc(Math.min(pieceBytes, bytes - at), 'trawl');
}

async function* endless(bytes: number): AsyncGenerator<Uint8Array> {
  yield* pieces(bytes);
  console.log('"stopped"');
  // A timer keeps the process alive until it is killed.
  await new Promise((resolve) => setTimeout(resolve, 600_000));
}

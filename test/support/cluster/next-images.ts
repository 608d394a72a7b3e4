import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { layouts } from '../../../src/store/schema.ts';
import { chart } from '../chart.ts';
import { makeNextRelease, next } from '../next-release.ts';
import { addFolderToImage, findWorkerArchive } from './image.ts';

/** Chart and images of a next release with another layout. */
export interface NextImages {
  readonly chart: string;
  readonly archives: readonly string[];
}

/** Makes chart and images in a folder: the images are those of this tree with the program of the next release as one more layer. */
export function makeNextImages(folder: string): NextImages {
  const tree = makeNextRelease(join(folder, 'tree'));
  const program = join(folder, 'layer', 'opt', 'trawl');
  mkdirSync(program, { recursive: true });
  for (const name of ['src', 'package.json']) cpSync(join(tree, name), join(program, name), { recursive: true });
  const built = dirname(findWorkerArchive());
  const archives = ['server', 'worker'].map((name) => {
    // A node takes archives in the order of their names, and each needs the layers of the image below.
    const archive = join(folder, `x-next-${name}.tar`);
    const image = `docker.io/library/trawl-${name}:${next.release}`;
    addFolderToImage(archive, join(built, `${name}.tar`), join(folder, 'layer', 'opt'), image);
    return archive;
  });
  return { chart: makeChart(join(folder, 'chart')), archives };
}

function makeChart(folder: string): string {
  cpSync(chart, folder, { recursive: true });
  const file = join(folder, 'Chart.yaml');
  const parts = readFileSync(file, 'utf8').split(`ersion: ${layouts.release}\n`);
  if (parts.length !== 3) throw new Error(`Chart.yaml names the release ${parts.length - 1} times`);
  writeFileSync(file, parts.join(`ersion: ${next.release}\n`));
  return folder;
}

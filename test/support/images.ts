import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { type OpenImage, openImage } from './container.ts';
import { root } from './tree.ts';

export const script = join(root, 'docker', 'build');

/** Both images of the tree as it is, with the folder that holds them as archives. */
export interface Images {
  readonly folder: string;
  readonly server: OpenImage;
  readonly worker: OpenImage;
  readonly close: () => void;
}

/** Opens the images, built unless they are there. */
export function openImages(): Images {
  // The build may take minutes, so its progress is shown.
  const { status } = spawnSync(script, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error('The images cannot be built');
  const folder = spawnSync(script, ['--where'], { encoding: 'utf8' }).stdout.trim();
  const [server, worker] = [openImage(join(folder, 'server.tar')), openImage(join(folder, 'worker.tar'))];
  const close = () => {
    server.close();
    worker.close();
  };
  return { folder, server, worker, close };
}

/** The longest time of a first build. */
export const buildMilliseconds = 1_200_000;

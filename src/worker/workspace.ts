import { chmod, chown, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServerAddress } from '../base/server-address.ts';
import type { Run } from '../media/tools.ts';
import type { Breach, ChildLimits } from './child-limits.ts';
import { startRelay } from './egress-forwarder.ts';
import { startBroom } from './orphan-cleaner.ts';
import { insidePort, ownUser, type Wall } from './sandbox-command.ts';
import { makeChildren } from './spawn-in-sandbox.ts';
import { startWatch } from './watch-limits.ts';

export interface PlaceOptions {
  /** Where private folders are made. */
  readonly root: string;
  readonly egress: ServerAddress;
  readonly wall: Wall;
  readonly limits: ChildLimits;
  readonly python: string;
  readonly readable: readonly string[];
  /** The text of a file of cookies that children may read. */
  readonly cookies: string | null;
  /** Told once, when the children broke a limit. */
  readonly broken: (breach: Breach) => void;
  /** Ends every child. */
  readonly signal: AbortSignal;
}

/** Where one attempt works: a folder, a way out, and children that have nothing else. */
export interface Place {
  readonly folder: string;
  /** URL of the way out, as children see it. */
  readonly proxy: string;
  readonly cookies: string | null;
  readonly run: Run;
  /** Ends what runs and removes everything. The same happens when this process is killed. */
  readonly close: () => Promise<void>;
}

/** Makes the place of one attempt. */
export async function openPlace(options: PlaceOptions): Promise<Place> {
  const { root, egress, wall, limits, python, broken, signal, cookies: text } = options;
  await mkdir(root, { recursive: true, mode: 0o700 });
  const broom = await startBroom(join(root, 'job-'));
  const home = broom.folder;
  const folder = join(home, 'job');
  const cookies = text === null ? null : join(home, 'cookies.txt');
  const socket = join(home, 'egress');
  const user = ownUser();
  const ended = new AbortController();
  try {
    // Nobody else comes as far as this folder, but bubblewrap must step into it without the rights of root.
    await mkdir(folder, { mode: 0o711 });
    if (wall === 'user') await chown(folder, user, user);
    if (cookies !== null && text !== null) {
      await writeFile(cookies, text, { mode: 0o400 });
      if (wall === 'user') await chown(cookies, user, user);
    }
    const relay = await startRelay(egress, wall === 'none' ? null : socket);
    if (wall !== 'none') await chmod(socket, 0o666);
    const port = wall === 'none' ? relay.port : insidePort;
    const readable = cookies ? [...options.readable, cookies] : options.readable;
    const walls = { wall, folder, readable, out: { port, socket }, limits, user, python };
    const both = AbortSignal.any([signal, ended.signal]);
    const children = makeChildren({ ...walls, signal: both }, broom.watch);
    const stopWatch = startWatch({ limits, folder, groups: () => children.groups, broken });
    const close = async () => {
      stopWatch();
      ended.abort();
      await relay.close();
      await broom.sweep();
    };
    return { folder, proxy: `http://127.0.0.1:${port}`, cookies, run: children.run, close };
  } catch (error) {
    await broom.sweep();
    throw error;
  }
}

import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { run } from './cluster/network.ts';
import { aFolder } from './redis.ts';

/** The configuration of an image. */
export interface ImageSettings {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly Labels: Readonly<Record<string, string>>;
}

/** An image that was unpacked as an engine does it. */
export interface OpenImage {
  readonly root: string;
  readonly settings: ImageSettings;
  readonly layers: readonly string[];
  readonly close: () => void;
}

/** The settings that a pod adds to an image. */
export interface Pod {
  readonly args?: readonly string[];
  /** Instead of the entrypoint. */
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Folders of this machine by where they are inside, besides `/scratch`. */
  readonly folders?: Readonly<Record<string, string>>;
  readonly rootMayBeWritten?: boolean;
}

export interface ContainerResult {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

const user = 65_532;

/** Opens an image that is an archive. */
export function openImage(archive: string): OpenImage {
  const name = `trawl-test-${randomBytes(6).toString('hex')}`;
  const had = listImages();
  run('buildah', 'from', '--quiet', '--name', name, `oci-archive:${archive}`);
  const about = JSON.parse(run('buildah', 'inspect', name)) as {
    FromImageID: string;
    OCIv1: { config: ImageSettings; rootfs: { diff_ids: string[] } };
  };
  return {
    root: run('buildah', 'mount', name).trim(),
    settings: about.OCIv1.config,
    layers: about.OCIv1.rootfs.diff_ids,
    close: () => {
      run('buildah', 'rm', name);
      // Others may have built images meanwhile.
      if (!had.some((id) => id.endsWith(about.FromImageID))) run('buildah', 'rmi', about.FromImageID);
    },
  };
}

/** Runs an image to its end, as the kubelet does with what job-manifest.ts says: nothing may be written but `/scratch`. */
export async function runImage(image: OpenImage, pod: Pod): Promise<ContainerResult> {
  const started = startImage(image, pod);
  started.process.stdin.end();
  return started.said;
}

/** Starts an image; `said` removes what it has left. */
export function startImage(
  image: OpenImage,
  pod: Pod,
): { process: ChildProcessWithoutNullStreams; said: Promise<ContainerResult> } {
  const { folder, remove } = aFolder();
  const scratch = join(folder, 'scratch');
  mkdirSync(scratch);
  chownSync(scratch, user, user);
  const folders = { '/scratch': scratch, ...pod.folders };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(specOf(image, { ...pod, folders })));
  const name = `trawl-test-${randomBytes(6).toString('hex')}`;
  const child = spawn('runc', ['run', '--bundle', folder, name], { stdio: 'pipe' });
  child.stdin.on('error', () => undefined);
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const said = Promise.all([ended, text(child.stdout), text(child.stderr)]).then(([code, out, err]) => {
    // The container is there only if it was killed.
    spawnSync('runc', ['delete', '--force', name]);
    remove();
    return { code, out, err };
  });
  return { process: child, said };
}

function specOf({ root, settings }: OpenImage, { args, command, env, folders, rootMayBeWritten }: Pod): object {
  const bind = Object.entries(folders ?? {}).map(([destination, source]) => {
    return { destination, source, type: 'bind', options: ['bind', 'rw'] };
  });
  const nothing = { bounding: [], effective: [], permitted: [] };
  return {
    ociVersion: '1.0.2',
    root: { path: root, readonly: !rootMayBeWritten },
    process: {
      user: { uid: user, gid: user },
      args: [...(command ?? settings.Entrypoint), ...(args ?? (command ? [] : settings.Cmd))],
      env: [...settings.Env, ...Object.entries(env ?? {}).map(([name, value]) => `${name}=${value}`)],
      cwd: settings.WorkingDir,
      capabilities: nothing,
      noNewPrivileges: true,
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=65536k'] },
      ...bind,
    ],
    linux: { namespaces: ['pid', 'mount', 'ipc', 'uts'].map((type) => ({ type })) },
  };
}

function listImages(): string[] {
  return run('buildah', 'images', '--all', '--quiet', '--no-trunc').split('\n').filter(Boolean);
}

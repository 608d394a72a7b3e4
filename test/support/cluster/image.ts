import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { read, root } from '../tree.ts';
import { run } from './network.ts';
import { pauseImage } from './node-files.ts';

/** The image of a pod that runs shell scripts: busybox, with its `sh`, `wget`, `dd`, `sleep` and so on. */
export const shellImage = 'local.test/shell:1';

/** The name of the worker image that `make images` builds. */
export const workerImage = `docker.io/library/trawl-worker:${JSON.parse(read('package.json')).version}`;

/** The archive of it, which is to be there. */
export function findWorkerArchive(): string {
  const archive = join(run(join(root, 'docker', 'build'), '--where').trim(), 'worker.tar');
  if (!existsSync(archive)) throw new Error("There is no worker image of this tree: run 'make images'");
  return archive;
}

/** Writes an archive with the images of a pod's holder and of shell scripts. Needs /bin/busybox of Debian's busybox-static. */
export function writeShellImage(archive: string): void {
  const root = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  for (const folder of ['bin', 'tmp', 'scratch', 'etc', 'dev', 'proc', 'sys']) mkdirSync(join(root, folder));
  cpSync('/bin/busybox', join(root, 'bin', 'busybox'));
  for (const name of run('/bin/busybox', '--list').split('\n').filter(Boolean)) {
    if (name !== 'busybox') symlinkSync('busybox', join(root, 'bin', name));
  }
  // A first process ends on the signals that it handles.
  const pause = ['/bin/sh', '-c', 'trap "exit 0" TERM INT; sleep 2147483647 & wait'];
  writeImage(archive, root, { [shellImage]: { Cmd: ['/bin/sh'] }, [pauseImage]: { Entrypoint: pause } });
  rmSync(root, { recursive: true });
}

/** Writes an OCI archive of one layer, the content of a folder, with an image of it for each name and its configuration. */
export function writeImage(archive: string, root: string, images: Readonly<Record<string, object>>): void {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  const blobs = join(folder, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const put = (kind: string, content: Buffer | string) => putBlob(blobs, kind, content);
  const json = (kind: string, content: object) => put(kind, JSON.stringify(content));
  const layerFile = join(folder, 'layer');
  const sameAlways = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  run('tar', '-C', root, ...sameAlways, '-cf', layerFile, '.');
  const layer = put('layer.v1.tar', readFileSync(layerFile));
  const manifests = Object.entries(images).map(([name, config]) => {
    const about = {
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
    };
    const manifest = {
      schemaVersion: 2,
      mediaType: mediaType('manifest.v1+json'),
      config: json('config.v1+json', about),
      layers: [layer],
    };
    return { ...json('manifest.v1+json', manifest), annotations: namesOf(name) };
  });
  writeArchive(archive, folder, manifests);
}

function mediaType(kind: string): string {
  return `application/vnd.oci.image.${kind}`;
}

function putBlob(folder: string, kind: string, content: Buffer | string) {
  const hash = createHash('sha256').update(content).digest('hex');
  writeFileSync(join(folder, hash), content);
  return { mediaType: mediaType(kind), digest: `sha256:${hash}`, size: Buffer.byteLength(content) };
}

function namesOf(name: string): object {
  return { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name.split(':').at(-1) };
}

/** Writes an OCI archive of a folder with blobs, and removes the folder. */
function writeArchive(archive: string, folder: string, manifests: readonly object[]): void {
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  run('tar', '-C', folder, '-cf', archive, 'oci-layout', 'index.json', 'blobs');
  rmSync(folder, { recursive: true });
}

interface Manifest {
  readonly config: { readonly digest: string };
  readonly layers: readonly object[];
}

/**
 * Writes an OCI archive of an image that has a folder of this machine as one more layer. It holds only what is new: the archive of
 * the image must have been imported before.
 */
export function addFolderToImage(archive: string, from: string, folder: string, name: string): void {
  const own = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  const entry = (path: string) => run('tar', '-xOf', from, path);
  const readBlob = (digest: string) => JSON.parse(entry(`blobs/sha256/${digest.replace('sha256:', '')}`));
  const manifest: Manifest = readBlob(JSON.parse(entry('index.json')).manifests[0].digest);
  const about = readBlob(manifest.config.digest);
  const layer = join(own, 'layer');
  run('tar', '-C', dirname(folder), '--owner=0', '--group=0', '--numeric-owner', '-cf', layer, basename(folder));
  const blobs = join(own, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const put = (kind: string, content: Buffer | string) => putBlob(blobs, kind, content);
  const added = put('layer.v1.tar', readFileSync(layer));
  const rootfs = { ...about.rootfs, diff_ids: [...about.rootfs.diff_ids, added.digest] };
  const config = put('config.v1+json', JSON.stringify({ ...about, history: undefined, rootfs }));
  const whole = put('manifest.v1+json', JSON.stringify({ ...manifest, config, layers: [...manifest.layers, added] }));
  writeArchive(archive, own, [{ ...whole, annotations: namesOf(name) }]);
}

import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
  const put = (mediaType: string, content: Buffer) => {
    const hash = createHash('sha256').update(content).digest('hex');
    writeFileSync(join(blobs, hash), content);
    return { mediaType, digest: `sha256:${hash}`, size: content.length };
  };
  const kind = (name: string) => `application/vnd.oci.image.${name}`;
  const json = (mediaType: string, content: object) => put(mediaType, Buffer.from(JSON.stringify(content)));
  const layerFile = join(folder, 'layer');
  const sameAlways = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  run('tar', '-C', root, ...sameAlways, '-cf', layerFile, '.');
  const layer = put(kind('layer.v1.tar'), readFileSync(layerFile));
  const manifests = Object.entries(images).map(([name, config]) => {
    const about = {
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
    };
    const manifest = {
      schemaVersion: 2,
      mediaType: kind('manifest.v1+json'),
      config: json(kind('config.v1+json'), about),
      layers: [layer],
    };
    const annotations = {
      'io.containerd.image.name': name,
      'org.opencontainers.image.ref.name': name.split(':').at(-1),
    };
    return { ...json(kind('manifest.v1+json'), manifest), annotations };
  });
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  run('tar', '-C', folder, '-cf', archive, 'oci-layout', 'index.json', 'blobs');
  rmSync(folder, { recursive: true });
}

import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ChartGround, namespace } from './chart-ground.ts';
import { apply } from './kubectl.ts';

/** Makes a volume for backups with the claim of an operator on it, both of this name; returns its folder on this machine. */
export async function makeBackupVolume({ cluster, node }: ChartGround, name: string): Promise<string> {
  const path = join(node.folder, 'volumes', name);
  mkdirSync(path, { recursive: true });
  // The kubelet gives no folder of the node to the group of a pod.
  chmodSync(path, 0o777);
  const [storage, accessModes] = ['1Gi', ['ReadWriteOnce']];
  const spec = { capacity: { storage }, accessModes, hostPath: { path } };
  const claim = { accessModes, storageClassName: '', volumeName: name, resources: { requests: { storage } } };
  await apply(
    cluster,
    { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec },
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace }, spec: claim },
  );
  return path;
}

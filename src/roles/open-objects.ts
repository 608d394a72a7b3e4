import { lookup } from 'node:dns/promises';
import type { Config } from '../base/config.ts';
import { makePolicy } from '../egress/address-policy.ts';
import { type FolderOptions, openFolder } from '../objects/folder-store.ts';
import type { ObjectStore } from '../objects/object-store.ts';

export async function openObjects(config: Config, folder: FolderOptions): Promise<ObjectStore> {
  return config.objects === 'folder' ? openFolder(folder) : openBucket(config);
}

export async function openBucket(config: Config): Promise<ObjectStore> {
  // Loaded only here, because it is large.
  const { openS3, partBytesFor } = await import('../objects/s3-store.ts');
  return openS3({
    settings: config,
    partBytes: partBytesFor(config.maxFileBytes),
    throughEgress: () => isPublic(config.s3Endpoint),
  });
}

/** True when a service has a public address, so that workers reach it only through egress. Without an endpoint it is AWS. */
export async function isPublic(endpoint: string | null): Promise<boolean> {
  if (endpoint === null) return true;
  const { hostname, port: given, protocol } = new URL(endpoint);
  const port = Number(given || (protocol === 'https:' ? 443 : 80));
  const policy = makePolicy({ ports: [port], allow: [], deny: [], ownAddresses: () => [] });
  const { verdict } = policy.judgeHost(hostname, port);
  if (verdict !== 'resolve') return verdict === 'open';
  const found = await lookup(hostname, { all: true });
  const addresses = found.map(({ address }) => address);
  return policy.judgeAddresses(hostname, addresses, port) === 'open';
}

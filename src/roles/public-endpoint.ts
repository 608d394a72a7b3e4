import { lookup } from 'node:dns/promises';
import { makePolicy } from '../egress/address-policy.ts';

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

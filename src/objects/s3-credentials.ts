import { fromIni } from '@aws-sdk/credential-provider-ini';
import { rereadAfter } from '../base/reread.ts';
import { secretRereadMs } from '../base/secret-files.ts';

/**
 * Provider of the access key in the shared credentials file of AWS. The SDK reads that file once; this one reads it again every 2 s,
 * so that a key can be changed while we run. A file that cannot be read leaves the key before.
 */
export function followCredentialsFile(
  read: ReturnType<typeof fromIni> = fromIni({ ignoreCache: true }),
  rereadMs = secretRereadMs,
): typeof read {
  // Long past: the SDK asks for a key that has an end each time, and keeps any other for good.
  return rereadAfter(rereadMs, async (options) => ({ expiration: new Date(0), ...(await read(options)) }));
}

import { fromIni } from '@aws-sdk/credential-provider-ini';
import { secretRereadMs } from '../base/secret-files.ts';

type AccessKey = Awaited<ReturnType<ReturnType<typeof fromIni>>>;

/**
 * Provider of the access key in the shared credentials file of AWS. The SDK reads that file once; this one reads it again every 2 s,
 * so that a key can be changed while we run. A file that cannot be read leaves the key before.
 */
export function followCredentialsFile(
  read: ReturnType<typeof fromIni> = fromIni({ ignoreCache: true }),
  rereadMs = secretRereadMs,
): typeof read {
  let last: { readonly credentials: AccessKey; readonly readAt: number } | undefined;
  return async (options) => {
    const isFresh = last !== undefined && performance.now() - last.readAt < rereadMs;
    if (last !== undefined && isFresh) return last.credentials;
    try {
      const credentials = await read(options);
      // Long past: the SDK asks for a key that has an end each time, and keeps any other for good.
      last = { credentials: { expiration: new Date(0), ...credentials }, readAt: performance.now() };
    } catch (error) {
      if (last === undefined) throw error;
    }
    return last.credentials;
  };
}

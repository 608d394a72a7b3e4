import { rateSentence } from '../api/reply.ts';
import { refuse, refuseWithout } from '../base/errors.ts';
import { postJson } from '../base/http-client.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { type Inspector, readInspection, readListing } from '../model/inspection-result.ts';

const retrySeconds = 2;

/** Both refuse with `unavailable` when the inspector is away or has no free slot, with `rate_limited` when the account uses its share. */
export function askInspector(at: ServerAddress): Inspector {
  const ask = async <T>(path: string, question: object, read: (json: unknown) => T | null, gone: AbortSignal) => {
    const { status, text } = await postJson(at, path, question, gone);
    if (status === 503) throw refuse('unavailable');
    if (status === 404) {
      const cause = new Error(`the inspector does not know ${path}: it is of another release`);
      throw refuseWithout('inspector', cause);
    }
    if (status === 429) throw refuse('rate_limited', rateSentence('metadata'), retrySeconds);
    const found = read(JSON.parse(text));
    if (found === null) throw new Error(`the inspector answered ${status} with something else`);
    return found;
  };
  return {
    inspect: (url, account, gone) => ask('/inspect', { url, account }, readInspection, gone),
    list: (url, maxEntries, account, gone) => ask('/list', { url, maxEntries, account }, readListing, gone),
  };
}

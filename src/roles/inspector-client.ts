import { rateSentence } from '../api/reply.ts';
import { refuse } from '../base/errors.ts';
import { postJson } from '../base/http-client.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { type Inspector, readInspection } from '../model/inspection-result.ts';

const retrySeconds = 2;

/** `inspect` refuses with `unavailable` when the inspector is away or has no free slot, with `rate_limited` when the account uses its share. */
export function askInspector(at: ServerAddress): Inspector {
  return {
    async inspect(url, account, gone) {
      const { status, text } = await postJson(at, '/inspect', { url, account }, gone);
      if (status === 503) throw refuse('unavailable');
      if (status === 429) throw refuse('rate_limited', rateSentence('metadata'), retrySeconds);
      const found = readInspection(JSON.parse(text));
      if (found === null) throw new Error(`the inspector answered ${status} with something else`);
      return found;
    },
  };
}

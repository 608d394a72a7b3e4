import { refuse } from '../base/errors.ts';
import { postJson } from '../base/http-client.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { type Inspector, readInspection } from '../model/inspection-result.ts';

/** `inspect` refuses with `unavailable` when the inspector is away or has no free slot. */
export function askInspector(at: ServerAddress): Inspector {
  return {
    async inspect(url, signal) {
      const { status, text } = await postJson(at, '/inspect', { url }, signal);
      if (status === 503) throw refuse('unavailable');
      const found = readInspection(JSON.parse(text));
      if (found === null) throw new Error(`the inspector answered ${status} with something else`);
      return found;
    },
  };
}

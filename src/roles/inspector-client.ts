import { refuse } from '../base/errors.ts';
import { postJson } from '../base/http-client.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { type Inspector, readInspection } from '../model/inspection-result.ts';

/** The inspector at an address; refuses with `unavailable` when it is away or can take no more. */
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

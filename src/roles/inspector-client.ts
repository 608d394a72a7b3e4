import { refuse } from '../base/errors.ts';
import { type Address, postJson } from '../base/post.ts';
import { type Inspector, readInspected } from '../model/inspected.ts';

/** The inspector at an address; refuses with `unavailable` when it is away or can take no more. */
export function askInspector(at: Address): Inspector {
  return {
    async inspect(url, signal) {
      const { status, text } = await postJson(at, '/inspect', { url }, signal);
      if (status === 503) throw refuse('unavailable');
      const found = readInspected(JSON.parse(text));
      if (found === null) throw new Error(`the inspector answered ${status} with something else`);
      return found;
    },
  };
}

import { doorArgs, doorKeys, freeDoor } from '../lua/door.ts';
import { script } from '../script.ts';

/**
 * A free call: judges the key and the plan's rate (D10). Answers {'entered', per-second limit, left, per-minute limit,
 * left, may read statistics} or a refusal.
 */
export const enter = script(
  'enter',
  'always',
  doorKeys,
  doorArgs,
  /* lua */ `${freeDoor({ account: 'stats' })}
return { 'entered', '', '', limits[1], limits[2], limits[3], limits[4], account_stats }
`,
);

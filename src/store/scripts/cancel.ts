import { finish, finishArgs, finishKeys } from '../lua/finish.ts';
import { script } from '../script.ts';

/**
 * Ends a job as cancelled at once, whatever it is doing: its hold is released, its worker is stopped by the controller,
 * which finds the job ended. Answers {'cancelled'}, {'already_ended', status}, {'not_found'} or {'roll'}.
 */
export const cancel = script(
  'cancel',
  'always',
  finishKeys,
  [...finishArgs, 'sentence'] as const,
  /* lua */ `${finish}
local refused = read_job() or open_books()
if refused then return refused end
finish({ status = 'Error', code = 'cancelled', error = sentence, log = 400, metadata = '', delivered = '' })
return { 'cancelled' }
`,
);

import { hostname, userInfo } from 'node:os';
import type { Actor } from '../model/audit.ts';

/** Returns the user who runs a command, as the audit log names them: behind sudo, who asked for it. */
export function operatorOf(env: Readonly<Record<string, string | undefined>>): Actor {
  return { via: 'command', who: env.SUDO_USER || userName(), from: hostname() };
}

/** A pod may run under an id that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}

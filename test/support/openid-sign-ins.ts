import { setTimeout as pause } from 'node:timers/promises';
import { until } from './until.ts';

/** End of a way through redirects. */
interface Arrival {
  readonly url: string;
  /** Cookies that the server of this URL has set on the way, by name. */
  readonly cookiesOf: (url: string) => ReadonlyMap<string, string>;
}

/** A person who signs in with OpenID Connect again and again. */
export interface OpenidSignIns {
  /** Ends of sign-ins that opened no session. */
  readonly complaints: readonly string[];
  /** Waits until a sign-in that begins from now on has opened a session. */
  another(): Promise<void>;
  stop(): Promise<void>;
}

const restMs = 500;
/** The identity provider closes a connection that was idle for 5 s: a halt of this process must not let a request meet that end. */
const ownConnection = { connection: 'close' };

/** Follows redirects as a browser does, each server with cookies of its own, until none follows. */
export async function followRedirects(start: string, change: (url: string) => string = (url) => url): Promise<Arrival> {
  const jar = new Map<string, Map<string, string>>();
  const cookiesOf = (url: string) => {
    const { origin } = new URL(url);
    const own = jar.get(origin) ?? new Map<string, string>();
    jar.set(origin, own);
    return own;
  };
  let url = start;
  for (;;) {
    url = change(url);
    const own = cookiesOf(url);
    const cookie = [...own].map((pair) => pair.join('=')).join('; ');
    const answer = await fetch(url, { redirect: 'manual', headers: { cookie, ...ownConnection } });
    await answer.arrayBuffer();
    for (const line of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';')[0]!.split(/=(.*)/s);
      own.set(name, value);
    }
    const next = answer.headers.get('location');
    if (next === null) return { url, cookiesOf };
    url = new URL(next, url).href;
  }
}

/** Signs in to a dashboard again and again, each time in a browser of its own. */
export function startOpenidSignIns(dashboardUrl: string): OpenidSignIns {
  const complaints: string[] = [];
  let [begun, done, isStopping] = [0, 0, false];
  const signIn = async (number: number) => {
    const { url, cookiesOf } = await followRedirects(`${dashboardUrl}/api/sign-in/openid`);
    const headers = { cookie: `trawl=${cookiesOf(dashboardUrl).get('trawl') ?? ''}`, ...ownConnection };
    const { status } = await fetch(`${dashboardUrl}/api/session`, { headers });
    if (status === 200) done = number;
    else complaints.push(`sign-in ${number} ended at ${url} with ${status}`);
  };
  const loop = async () => {
    while (!isStopping) {
      begun++;
      await signIn(begun).catch((error: Error) => complaints.push(`sign-in ${begun}: ${error.cause ?? error}`));
      await pause(restMs);
    }
  };
  const ended = loop();
  return {
    complaints,
    another: () => {
      const before = begun;
      return until(
        () => done > before,
        30,
        () => `a sign-in after ${before}: ${complaints.slice(0, 3)}`,
      ).then(() => undefined);
    },
    stop: () => {
      isStopping = true;
      return ended;
    },
  };
}

import { randomBytes } from 'node:crypto';
import { makePersonSecret, type PersonRole, personIdOf } from '../../src/model/person.ts';
import { invitePerson } from '../../src/store/people/invite-person.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { type ApiCaller, startApi, type TestApi } from './api.ts';
import type { Json } from './json.ts';

/** An answer of the dashboard. */
export interface DashboardAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Json;
}

interface RequestOptions {
  /** `null` sends none. */
  readonly origin?: string | null;
  readonly csrf?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Speaks to the dashboard as its pages do: keeps the cookie, sends origin and token. */
export interface BrowserSession {
  cookie: string;
  csrf: string;
  ask(method: string, path: string, body?: unknown, options?: RequestOptions): Promise<DashboardAnswer>;
  /** Signs in with the secret of a link. */
  signIn(secret: string): Promise<DashboardAnswer>;
}

export function openBrowser(url: string): BrowserSession {
  const browser: BrowserSession = {
    cookie: '',
    csrf: '',
    async ask(method, path, body, { origin = url, csrf = browser.csrf, headers = {} } = {}) {
      const isChange = method !== 'GET';
      const answer = await fetch(url + path, {
        method,
        redirect: 'manual',
        headers: {
          ...(browser.cookie ? { cookie: browser.cookie } : {}),
          ...(isChange && origin !== null ? { origin } : {}),
          ...(isChange && csrf ? { 'x-csrf-token': csrf } : {}),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      for (const line of answer.headers.getSetCookie()) browser.cookie = line.split(';')[0]!;
      const text = await answer.text();
      const isJson = answer.headers.get('content-type')?.startsWith('application/json');
      return { status: answer.status, headers: answer.headers, text, json: isJson ? JSON.parse(text) : null };
    },
    async signIn(secret) {
      const answer = await browser.ask('POST', '/api/sign-in', { token: secret });
      if (answer.status === 200) browser.csrf = (await browser.ask('GET', '/api/session')).json.csrf;
      return answer;
    },
  };
  return browser;
}

/** Signs in with an e-mail address and a password. */
export function byPassword(browser: BrowserSession, email: string, password: string): Promise<DashboardAnswer> {
  return browser.ask('POST', '/api/sign-in', { email, password });
}

/** Invites a person, or an operator where `accountId` is ''; returns the secret of the sign-in link. */
export async function invited(
  store: RecordStore,
  accountId: string,
  role: PersonRole | 'operator' = 'owner',
  email = `${randomBytes(4).toString('hex')}@example.com`,
): Promise<string> {
  const secret = makePersonSecret(personIdOf(email), randomBytes(32));
  await invitePerson(store, { accountId, email, role, secret, isBound: false });
  return secret;
}

/** Signs a person in by a link, in a browser of their own. */
export async function signedInAt(
  { dashboardUrl, store }: Pick<TestApi, 'dashboardUrl' | 'store'>,
  accountId: string,
  role?: Parameters<typeof invited>[2],
  email?: string,
): Promise<BrowserSession> {
  const browser = openBrowser(dashboardUrl);
  await browser.signIn(await invited(store, accountId, role, email));
  return browser;
}

/** An API with its dashboard, a fresh account with a key, and an owner of the account who is signed in. */
export interface Dashboard {
  readonly api: TestApi;
  readonly caller: ApiCaller;
  readonly owner: BrowserSession;
  /** Signs another person in, by a link. */
  signedIn(accountId: string, role: Parameters<typeof invited>[2], email?: string): Promise<BrowserSession>;
}

/** Passes a dashboard to the tests of a block, with another account before each. */
export function eachWithDashboard(take: (dashboard: Dashboard) => void): void {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000' });
  });
  after(() => api.stop());
  beforeEach(async () => {
    api.store.advanceToNoon();
    const caller = await api.addCaller();
    const signedIn: Dashboard['signedIn'] = (...person) => signedInAt(api, ...person);
    take({ api, caller, owner: await signedIn(caller.account, 'owner'), signedIn });
  });
}

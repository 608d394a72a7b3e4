import { expect } from 'chai';
import { type BrowserSession, openBrowser } from '../support/browser-session.ts';
import { type ChartGround, controllerOf, namespace } from '../support/cluster/chart-ground.ts';
import { kubectl } from '../support/cluster/kubectl.ts';

/** The default of `dashboardUrl`. */
const origin = 'http://127.0.0.1:8081';

/** Signs the first person of an account in at a pod of the dashboard, by the link that the command of docs/install.md prints. */
export async function signInFirst(ground: ChartGround, account: string): Promise<BrowserSession> {
  const words = ['admin', 'user', 'create', account, '--email', 'me@example.com', '--role', 'owner', '--json'];
  const line = ['exec', '-n', namespace, controllerOf('trawl'), '--', 'node', '/opt/trawl/src/main.ts', ...words];
  const link = new URL(JSON.parse(await kubectl(ground.cluster, line)).sign_in_url);
  expect(link.origin).to.equal(origin);
  const pod = await ground.podOf('dashboard');
  const browser = openBrowser(`http://${pod.status.podIP}:8081`);
  const { status, text } = await browser.ask('POST', '/api/sign-in', { token: link.hash.slice(1) }, { origin });
  expect(status, text).to.equal(200);
  browser.csrf = (await browser.ask('GET', '/api/session')).json.csrf;
  return browser;
}

/** Starts a download as the page of a signed-in person does; returns the id of its job. */
export async function startByPage(browser: BrowserSession, query: string): Promise<string> {
  const { status, json, text } = await browser.ask('POST', '/api/jobs', { endpoint: 'video', query }, { origin });
  expect(status, text).to.equal(202);
  return json.job_id;
}

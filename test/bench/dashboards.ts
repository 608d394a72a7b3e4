import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { invited, openBrowser } from '../support/browser-session.ts';
import { admitted, anAccount, storeOf, theJob } from '../support/record.ts';
import type { TestRedis } from '../support/redis.ts';
import { serve } from './load.ts';
import { inLanes } from './rounds.ts';

/** Pages that show the jobs of as many accounts, in a server process of their own. */
export interface Dashboards {
  /** Closes all and opens them anew, because a stream ends after a minute; each has its first list then. */
  open(): Promise<void>;
  close(): Promise<void>;
  stop(): Promise<void>;
}

const jobsOfEach = 20;

export async function openDashboards(redis: TestRedis, many: number): Promise<Dashboards> {
  const store = storeOf(redis.connection);
  const folder = mkdtempSync(join(tmpdir(), 'trawl-bench-'));
  const server = await serve('dashboard', redis.url, folder);
  const cookies: string[] = [];
  await inLanes(16, many, async () => {
    const caller = await anAccount(store, { credits: jobsOfEach });
    // None waits: the jobs that are measured are the only ones to start.
    for (let n = 0; n < jobsOfEach; n++) await cancelJob(store, await theJob(store, await admitted(store, caller)));
    const browser = openBrowser(`http://127.0.0.1:${server.port}`);
    const { status } = await browser.signIn(await invited(store, caller.accountId));
    if (status !== 200) throw new Error(`the sign-in answered ${status}`);
    cookies.push(browser.cookie);
  });
  let sockets: Socket[] = [];
  const close = async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
  };
  return {
    // A stream ends after a minute.
    async open() {
      await close();
      await inLanes(32, many, async (n) => {
        // A server that has much to do answers 503, and the page asks again.
        for (let list: Socket | null = null; list === null; ) {
          list = await openList(server.port, cookies[n]!);
          if (list !== null) sockets.push(list);
        }
      });
    },
    close,
    async stop() {
      await close();
      sockets = [];
      await server.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** A live list whose first jobs have come; `null` when the server has none to give now. */
async function openList(port: number, cookie: string): Promise<Socket | null> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET /api/jobs/events HTTP/1.1\r\nHost: x\r\ncookie: ${cookie}\r\n\r\n`);
  let seen = '';
  while (!seen.includes('event: jobs')) {
    seen += String((await once(socket, 'data'))[0]);
    if (!seen.startsWith('HTTP/1.1 200')) {
      socket.destroy();
      if (seen.startsWith('HTTP/1.1 503')) return null;
      throw new Error(seen.slice(0, 200));
    }
  }
  socket.resume();
  return socket;
}

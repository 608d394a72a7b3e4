import { refuse } from '../base/errors.ts';
import { type Engine, endpointsOfEngines, healthOf } from '../model/stats.ts';
import { writeTime } from '../model/timestamp.ts';
import { listBlocks } from '../store/access/list-blocks.ts';
import { readOpenings } from '../store/jobs/open-work.ts';
import { readMinutes } from '../store/log/read-minutes.ts';
import { type DashboardRoute, readRoute } from './dashboard-app.ts';

const engines = Object.keys(endpointsOfEngines) as Engine[];
const maxShownBlocks = 200;

/** The whole service, which operators alone see: health of every engine, work in hand, blocked addresses. */
export function serviceRoutes(): DashboardRoute[] {
  return [
    readRoute('/api/service', async ({ store, signedIn }) => {
      if (!signedIn.person.isOperator) throw refuse('forbidden', 'Only operators see the whole service');
      const now = store.clock.now();
      const [work, blocks, minutes] = await Promise.all([
        readOpenings(store),
        listBlocks(store),
        Promise.all(engines.map((engine) => readMinutes(store, endpointsOfEngines[engine]))),
      ]);
      const { queued, active, delayed, calls, webhooks, oldestQueued, drainSince } = work;
      return {
        status: 200,
        body: {
          engines: engines.map((engine, n) => healthOf(engine, null, minutes[n]!, now)),
          work: { queued, running: active, delayed, calls, webhooks },
          oldest_queued_at: writeTime(oldestQueued),
          drain_since: writeTime(drainSince),
          blocked: blocks.length,
          // Those that are blocked longest.
          blocks: blocks
            .sort((a, b) => b.until - a.until)
            .slice(0, maxShownBlocks)
            .map(({ address, until }) => ({ address, until: writeTime(until) })),
        },
      };
    }),
  ];
}

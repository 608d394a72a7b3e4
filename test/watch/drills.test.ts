import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { boards } from '../../dashboards/boards.ts';
import { alerts } from '../support/alerts.ts';
import { read } from '../support/tree.ts';
import { until } from '../support/until.ts';
import { clockFactor, usualSeconds } from '../support/watch/compressed-rules.ts';
import { type DrillGround, startDrillGround } from '../support/watch/drill-ground.ts';
import { type DrillLoad, startLoad } from '../support/watch/drill-load.ts';
import { findEmpty } from '../support/watch/panel-queries.ts';
import { watchedNamespace } from '../support/watch/prometheus.ts';
import { blocksOf, runRunbook } from '../support/watch/runbook-shell.ts';
import { drills } from './drills.ts';

const isLong = process.env.ROUNDS !== undefined;
/** Ends a hang: a drill whose alert has not fired by then does not fire it. */
const maxSeconds = 30;
const lookMs = 200;
/** Seconds between two reads by Prometheus. */
const readSeconds = 1;

describe('the drills of docs/drills.md', () => {
  it('are its rows, with the same alerts and times', () => {
    const rows = [...read('docs/drills.md').matchAll(/^\| (.+?) \| (\[Trawl.+?) \| (.+?) \|$/gm)];
    const listed = rows.map(([, name, fired]) => {
      const parts = [...fired!.matchAll(/\[(\w+)\]\(runbooks\/\1\.md\) (\d+) min/g)];
      return { name, alerts: Object.fromEntries(parts.map(([, alert, minutes]) => [alert, Number(minutes) * 60])) };
    });
    expect(listed).to.deep.equal(drills.map(({ name, alerts: fired }) => ({ name, alerts: fired })));
  });

  it('fire only alerts that exist', () => {
    const names = alerts.map(({ alert }) => alert);
    const fired = drills.flatMap((drill) => Object.keys(drill.alerts));
    expect(fired.filter((name) => !names.includes(name))).to.deep.equal([]);
  });

  it('count seconds before the first event as they are, with those that Kubernetes usually takes longer', () => {
    const prelude = { seconds: 12, moreSeconds: 100 };
    expect(usualSeconds('TrawlInterruptions', 20)).to.equal(600);
    expect(usualSeconds('TrawlInterruptions', 20, prelude)).to.equal(12 + 100 + 8 * 30);
    expect(usualSeconds('TrawlNoLeader', 20, prelude) - usualSeconds('TrawlNoLeader', 20)).to.equal(100);
  });
});

// Their faults and alerts take minutes, and a machine that does much else fires alerts of its own.
if (isLong)
  describe(`drills on a whole trawl, ${clockFactor} times as fast`, function () {
    this.timeout(1_200_000);
    let ground: DrillGround;
    let load: DrillLoad;

    before(async () => {
      ground = await startDrillGround();
      load = startLoad(ground);
      const count = async (query: string) => Number((await ground.prometheus.ask(query))[0]?.value[1] ?? 0);
      await until(async () => (await count('sum(trawl_charges_total)')) >= 10, 60, 'ten jobs are charged');
      const delivered = 'sum(trawl_webhook_deliveries_total{outcome="delivered"})';
      await until(async () => (await count(delivered)) >= 10, 60, 'ten webhooks are delivered');
    });
    after(async () => {
      await load?.stop();
      await ground?.stop();
    });

    it('have data under load for the queries of all panels that do not say why they may have none, and no alert', async () => {
      for (const { name, rows } of boards) {
        const isFull = async () => (await findEmpty(ground.prometheus, rows)).length === 0;
        await until(isFull, 20, `${name} has data`).catch(async (error) => {
          throw new Error(`${error.message}: ${await findEmpty(ground.prometheus, rows)}`);
        });
      }
      for (const { expr } of alerts) await ground.prometheus.ask(expr);
      expect(await ground.prometheus.firing()).to.deep.equal([]);
    });

    const rehearsed = drills.flatMap((drill) => Object.keys(drill.alerts));
    for (const { alert } of alerts.filter((one) => !rehearsed.includes(one.alert)))
      it(`the runbook of ${alert}, which no drill fires, can be followed`, () => follow(alert));

    for (const { name, alerts: fired, after: late = [], event, shows = [], make } of drills)
      it(`${name}: ${Object.keys(fired).join(', ')} and no other alert, and its runbook can be followed`, async () => {
        const { prometheus } = ground;
        // What the drill before has left in a window would fire an alert of its own.
        await until(async () => (await prometheus.active()).length === 0, 60, 'no alert fires or will').catch(
          async (e) => {
            throw new Error(`${e.message}: ${await prometheus.active()}`);
          },
        );
        let began = performance.now();
        const sinceBegan = () => (performance.now() - began) / 1000;
        let prelude: number | undefined;
        const seen = new Map<string, number>();
        const others: string[] = [];
        let isMended = false;
        const look = async () => {
          await pause(lookMs);
          if (event && prelude === undefined && (await prometheus.ask(event.query)).length > 0) prelude = sinceBegan();
          for (const alert of await prometheus.firing()) {
            if (seen.has(alert)) continue;
            seen.set(alert, sinceBegan());
            const mayFire = alert in fired || (isMended && late.includes(alert));
            if (!mayFire) others.push(`${alert}: ${await prometheus.wordsOf(alert)}`);
          }
        };
        const mend = await make(ground);
        began = performance.now();
        try {
          for (const alert of Object.keys(fired)) {
            const hasFired = async () => {
              await look();
              return seen.has(alert);
            };
            await until(hasFired, maxSeconds, `${alert} fires`).catch((error) => {
              throw new Error(`${error.message}, but ${[...seen.keys()]}`);
            });
          }
          for (const query of shows) {
            const asked = query.replaceAll('$namespace', watchedNamespace).replaceAll('[5m]', '[10s]');
            await until(async () => (await prometheus.ask(asked)).length > 0, maxSeconds, `${asked} has an answer`);
          }
          for (const alert of Object.keys(fired)) await follow(alert);
        } finally {
          await mend();
          isMended = true;
        }
        const isOver = async () => {
          await look();
          return Object.keys(fired).every((alert) => alert === 'TrawlClockMoved') || (await isQuiet(name));
        };
        await until(isOver, 30, 'the alerts end').catch(async (error) => {
          throw new Error(`${error.message}: ${await prometheus.firing()}`);
        });
        // What Prometheus shows may have happened a second before: that second is one of the rules.
        const seconds = Math.max(0, (prelude ?? 0) - readSeconds);
        const before = { seconds, moreSeconds: event?.moreSeconds ?? 0 };
        const times = [...seen].map(([alert, after]) => [alert, usualSeconds(alert, after, before)] as const);
        if (process.env.SHOW_TIMES) console.log(name, before, Object.fromEntries(seen), Object.fromEntries(times));
        expect(others, 'other alerts').to.deep.equal([]);
        expect(times.filter(([alert, seconds]) => seconds > fired[alert]!)).to.deep.equal([]);
      });

    /** Returns true when no alert fires; the clock of Redis is not trusted for ten minutes, which no drill waits for. */
    async function isQuiet(name: string): Promise<boolean> {
      const firing = await ground.prometheus.firing();
      return firing.every((alert) => alert === 'TrawlClockMoved' && name.includes('clock'));
    }

    /** Runs the queries and the commands of a runbook while the fault is on. */
    async function follow(alert: string): Promise<void> {
      for (const query of blocksOf(alert, 'promql')) await ground.prometheus.ask(query);
      const names = { job: load.jobs.at(-1) ?? '', account: ground.testbed.account };
      for (const { line, code, said } of await runRunbook(ground, alert, names)) {
        // 2 is a wrong use of a command, 126 and 127 one that is not there; 1 is a finding, or nothing found.
        expect(code, `${alert}: ${line}: ${said.slice(0, 2_000)}`).to.be.oneOf([0, 1]);
        expect(said, `${alert}: ${line}`).not.to.match(/unknown command|Usage:/);
      }
    }
  });
